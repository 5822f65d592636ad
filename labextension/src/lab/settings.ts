/** What the reader set: whether editors show badges and types, and reports the verdict alone. */

import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ISignal, Signal } from '@lumino/signaling';

import { Wishes } from './badges';
import { setBrief } from './open';

export type Wish = 'badges' | 'types' | 'brief';

export class Settings implements Wishes {
  badges = true;
  types = true;
  brief = false;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Follow the settings of a plugin; without a registry, all is shown. */
  async follow(registry: ISettingRegistry, plugin: string): Promise<void> {
    const settings = await registry.load(plugin);
    const read = (): void => {
      this.badges = settings.get('badges').composite !== false;
      this.types = settings.get('types').composite !== false;
      this.brief = settings.get('brief').composite === true;
      setBrief(this.brief);
      this._changed.emit();
    };
    settings.changed.connect(read);
    this._store = settings;
    read();
  }

  /** Switch one on or off, for good where there is a place to keep it. */
  async toggle(wish: Wish): Promise<void> {
    if (this._store) {
      await this._store.set(wish, !this[wish]);
      return;
    }
    this[wish] = !this[wish];
    setBrief(this.brief);
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _store: ISettingRegistry.ISettings | null = null;
}
