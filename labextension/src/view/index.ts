/** The view's door: the JupyterLab extension and the widgets draw reports through it. */

export { MIME_TYPE } from '../generated/vocabulary';
export { isPacked, readReport, unpacked } from './report';
export type { Report } from './report';
export { mount, mountKept, mountReport } from './view';
export type { Host, View } from './view';
