/** The mesh: the groups of the collective, or the blocks of the array, that is looked at. */

import { REPORT } from '../generated/vocabulary';
import { h, heading } from './dom';
import { layoutOf } from './layout';
import {
  besideText,
  deviceText,
  exchangeText,
  groupOf,
  groupsPicture,
  groupsText,
  holdersPicture,
  listed,
  meshPicture,
  blockText
} from './pictures';
import { Collective, Report, Value } from './report';
import { isInPairs } from './ring';
import { clean, fill } from './slots';
import { Focus, Store } from './store';
import { Tiles } from './tiles';

const BOX = { width: 316, height: 250 };

export class MeshPanel {
  readonly element: HTMLElement;

  constructor(
    private readonly report: Report,
    store: Store
  ) {
    this._tiles = new Tiles(BOX, device => store.set({ device }));
    this._caption = h('div', { class: 'caption' });
    this._title = heading(REPORT.mesh);
    this.element = h(
      'div',
      { class: 'mesh' },
      this._title,
      this._tiles.element,
      this._caption
    );
    this._draw(store.focus);
    store.subscribe((focus, changed) => {
      if (changed.has('chosen') || changed.has('pointed') || changed.has('value')) {
        this._draw(focus);
      }
      this._mark(focus);
    });
  }

  private _draw({ chosen, pointed, value }: Focus): void {
    const collective = pointed ?? chosen;
    const subject = pointed ?? value ?? chosen;
    if (subject === this._subject) {
      return;
    }
    this._subject = subject;
    if (value && subject === value) {
      this._showValue(value);
    } else if (collective && subject === collective) {
      this._showGroups(collective);
    } else {
      this._tiles.show(meshPicture(this.report.mesh));
      this._caption.textContent = '';
    }
  }

  private _showGroups(collective: Collective): void {
    const { mesh } = this.report;
    this._tiles.show(groupsPicture(collective, mesh));
    this._title.textContent = REPORT.whoExchanges;
    this._caption.textContent = `${groupsText(collective)}${members(collective, mesh.device_ids)}`;
  }

  private _showValue(value: Value): void {
    const { mesh } = this.report;
    const layout = layoutOf(value, mesh);
    this._tiles.show(layout ? holdersPicture(value, mesh, layout) : meshPicture(mesh));
    this._title.textContent = REPORT.whoHolds;
    const said = fill(layout ? REPORT.byBlock : REPORT.byNothing, { name: clean(value.name) });
    this._caption.textContent = [said, value.say('copies')].filter(Boolean).join('; ');
  }

  private _mark({ chosen, pointed, value, device }: Focus): void {
    const { mesh } = this.report;
    const collective = pointed ?? (value ? null : chosen);
    if (device === null) {
      this._tiles.mark([]);
      this._tiles.say('');
      return;
    }
    this._tiles.mark([device], collective && together(device, collective, this.report));
    const parts = [deviceText(device, mesh)];
    const layout = value && layoutOf(value, mesh);
    if (collective) {
      parts.push(exchangeText(device, collective, mesh));
    } else if (value && layout) {
      const block = blockText(layout.blocks[device], value, mesh, layout);
      parts.push(fill(REPORT.holds, { block }));
    }
    parts.push(besideText(device, mesh));
    this._tiles.say(parts.filter(Boolean).join('; '));
  }

  private readonly _tiles: Tiles;
  private readonly _title: HTMLElement;
  private readonly _caption: HTMLElement;
  private _subject: Collective | Value | null | undefined;
}

/** Give the devices that one exchanges with, itself among them. */
function together(device: number, collective: Collective, report: Report): Set<number> | null {
  if (isInPairs(collective)) {
    return new Set(collective.groups.filter(pair => pair.includes(device)).flat());
  }
  const number = groupOf(collective, report.mesh)[device];
  return number < 0 ? null : new Set(collective.groups[number]);
}

const LISTED = 8;

/** List the groups in text while they are few: `{0 1} {2 3}`. */
function members(one: Collective, ids: readonly number[]): string {
  const { groups } = one;
  if (groups.length > LISTED || isInPairs(one)) {
    return '';
  }
  const found = groups.map(group => `{${listed(group.map(place => ids[place]))}}`);
  return `: ${found.join(' ')}`;
}
