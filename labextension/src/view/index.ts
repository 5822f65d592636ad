/** The view's door: the JupyterLab extension and the widgets draw reports through it. */

export { MIME_TYPE } from '../generated/vocabulary';
export { readReport } from './report';
export type { Report } from './report';
export { mount, mountReport } from './view';
export type { View } from './view';
