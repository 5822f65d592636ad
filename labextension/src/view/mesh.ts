/** The mesh: the groups of the collective, or the blocks of the array, that is looked at. */

import { REPORT } from '../generated/vocabulary';
import { h, heading } from './dom';
import { layoutOf } from './layout';
import {
  besideText,
  blockText,
  deviceText,
  exchangeText,
  groupOf,
  groupsPicture,
  groupsText,
  holdersPicture,
  listed,
  meshPicture
} from './pictures';
import { Collective, Mesh, Report, Value } from './report';
import { isInPairs } from './ring';
import { clean, fill } from './slots';
import { Focus, Store } from './store';
import { Tiles } from './tiles';

/** As wide as its place: beside a collective, or among the cards of arrays. */
const BOXES = { collective: { width: 316, height: 250 }, value: { width: 222, height: 208 } };
/** Groups that are listed in text. */
const LISTED = 8;

export class MeshPanel {
  readonly element: HTMLElement;

  /** `shows` says what is drawn on it: the collective that is shown, or the array pointed at. */
  constructor(
    { mesh }: Report,
    store: Store,
    private readonly shows: 'collective' | 'value'
  ) {
    this._mesh = mesh;
    this._tiles = new Tiles(BOXES[shows], device => store.set({ device }));
    this.element = h('div', { class: 'mesh' }, this._title, this._tiles.element, this._caption);
    this._draw(store.focus);
    store.subscribe((focus, changed) => {
      if (changed.has('chosen') || changed.has('value')) {
        this._draw(focus);
      }
      this._mark(focus);
    });
  }

  private _draw(focus: Focus): void {
    const { collective, value } = this._looked(focus);
    const subject = collective ?? value;
    if (subject === this._subject) {
      return;
    }
    this._subject = subject;
    const { _mesh: mesh, _tiles: tiles } = this;
    if (collective) {
      tiles.show(groupsPicture(collective, mesh));
      this._title.textContent = REPORT.whoExchanges;
      this._caption.textContent = groupsText(collective) + members(collective, mesh.device_ids);
    } else if (value) {
      const layout = layoutOf(value, mesh);
      tiles.show(layout ? holdersPicture(value, mesh, layout) : meshPicture(mesh));
      this._title.textContent = REPORT.whoHolds;
      const how = fill(layout ? REPORT.byBlock : REPORT.byNothing, { name: clean(value.name) });
      this._caption.textContent = [how, value.say('copies')].filter(Boolean).join('; ');
    } else {
      tiles.show(meshPicture(mesh));
      this._title.textContent = REPORT.mesh;
      this._caption.textContent = '';
    }
  }

  private _looked({ chosen, value }: Focus): Pick<Focus, 'value'> & { collective: Collective | null } {
    return this.shows === 'value' ? { collective: null, value } : { collective: chosen, value: null };
  }

  private _mark(focus: Focus): void {
    const { _mesh: mesh, _tiles: tiles } = this;
    const { device } = focus;
    const { collective, value } = this._looked(focus);
    if (device === null) {
      tiles.mark([]);
      tiles.say('');
      return;
    }
    const layout = value && layoutOf(value, mesh);
    tiles.mark([device], collective && together(device, collective, mesh));
    const parts = [deviceText(device, mesh)];
    if (collective) {
      parts.push(exchangeText(device, collective, mesh));
    } else if (value && layout) {
      const block = blockText(layout.blocks[device], value, mesh, layout);
      parts.push(fill(REPORT.holds, { block }));
    }
    tiles.say([...parts, besideText(device, mesh)].filter(Boolean).join('; '));
  }

  private readonly _mesh: Mesh;
  private readonly _tiles: Tiles;
  private readonly _title = heading(REPORT.mesh);
  private readonly _caption = h('div', { class: 'caption' });
  private _subject: Collective | Value | null | undefined;
}

/** Give the devices that one communicates with, itself among them. */
function together(device: number, collective: Collective, mesh: Mesh): Set<number> | null {
  if (isInPairs(collective)) {
    return new Set(collective.groups.filter(pair => pair.includes(device)).flat());
  }
  const number = groupOf(collective, mesh)[device];
  return number < 0 ? null : new Set(collective.groups[number]);
}

/** List the groups in text while they are few: `{0 1} {2 3}`. */
function members(collective: Collective, ids: readonly number[]): string {
  const { groups } = collective;
  if (groups.length > LISTED || isInPairs(collective)) {
    return '';
  }
  const found = groups.map(group => `{${listed(group.map(place => ids[place]))}}`);
  return `: ${found.join(' ')}`;
}
