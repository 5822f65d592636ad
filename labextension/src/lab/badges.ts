/** Badges at the ends of an editor's lines, and types after its names. */

import { Extension, Range, StateEffect, StateField, Text } from '@codemirror/state';
import { Decoration, DecorationSet, EditorView, ViewPlugin, WidgetType } from '@codemirror/view';
import { ICodeCellModel } from '@jupyterlab/cells';
import { ISignal } from '@lumino/signaling';

import { EDITOR } from '../generated/vocabulary';
import { paint } from '../view/badge';
import { fill } from '../view/slots';
import { Mark, Note, Sign, Type, behind } from './notes';
import { Reports } from './reports';

/** What the reader wants to see in editors. */
export interface Wishes {
  badges: boolean;
  types: boolean;
  changed: ISignal<unknown, void>;
}

/** Shows a collective in its report. */
export type Open = (mark: Mark) => void;

/** What is shown, and where. */
interface Shows extends Pick<Wishes, 'badges' | 'types'> {
  notes: readonly Note[];
}

const renew = StateEffect.define<Shows>();

/** Give the editor of a code cell its badges. */
export function cellBadges(
  model: ICodeCellModel,
  reports: Reports,
  wishes: Wishes,
  open: Open
): Extension {
  const notebook = model.sharedModel.notebook;
  if (!notebook) {
    return [];
  }
  return [field(open), feed(model.id, reports.of(notebook), wishes)];
}

interface Source {
  about: (cell: string) => readonly Note[];
  changed: ISignal<unknown, void>;
}

/** Bring what the reports say into the editor, now and whenever that changes. */
export function feed(cell: string, source: Source, wishes: Wishes): Extension {
  return ViewPlugin.define(view => {
    let alive = true;
    let due = false;
    let some = false;
    const update = (): void => {
      if (!due) {
        due = true;
        // Outputs may change while the editor is in the middle of an update of its own.
        queueMicrotask(() => {
          due = false;
          const notes = source.about(cell);
          // Most cells have nothing, and an edit of another changes nothing in them.
          if (alive && (notes.length || some)) {
            some = notes.length > 0;
            const { badges, types } = wishes;
            view.dispatch({ effects: renew.of({ notes, badges, types }) });
          }
        });
      }
    };
    source.changed.connect(update);
    wishes.changed.connect(update);
    update();
    return {
      destroy: () => {
        alive = false;
        source.changed.disconnect(update);
        wishes.changed.disconnect(update);
      }
    };
  });
}

/** Show what came last; an edit that matters brings something else before the page is painted. */
export function field(open: Open): Extension {
  return StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update: (decorations, { newDoc, changes, effects }) => {
      const last = effects.filter(effect => effect.is(renew)).at(-1);
      return last ? draw(last.value, newDoc, open) : decorations.map(changes);
    },
    provide: found => EditorView.decorations.from(found)
  });
}

function draw({ notes, badges, types }: Shows, doc: Text, open: Open): DecorationSet {
  const ranges: Range<Decoration>[] = [];
  for (const note of notes.filter(({ line }) => line >= 1 && line <= doc.lines)) {
    const line = doc.line(note.line);
    for (const type of types ? note.types : []) {
      const place = behind(type.name, line.text);
      if (place !== null) {
        const widget = new TypeWidget(type);
        ranges.push(Decoration.widget({ widget, side: 1 }).range(line.from + place));
      }
    }
    if (note.sign && types) {
      const widget = new SignWidget(note.sign);
      ranges.push(Decoration.widget({ widget, side: 3, block: true }).range(line.to));
    }
    if (badges && note.marks.length) {
      const widget = new BadgeWidget(note.marks, open);
      ranges.push(Decoration.widget({ widget, side: 2 }).range(line.to));
    }
  }
  return Decoration.set(ranges, true);
}

class BadgeWidget extends WidgetType {
  constructor(
    private readonly marks: readonly Mark[],
    private readonly open: Open
  ) {
    super();
  }

  override eq(other: BadgeWidget): boolean {
    return JSON.stringify(other.marks) === JSON.stringify(this.marks);
  }

  override toDOM(): HTMLElement {
    const box = document.createElement('span');
    box.className = 'shardnb-marks';
    box.append(...this.marks.map(mark => this._button(mark)));
    return box;
  }

  override ignoreEvent(): boolean {
    return true;
  }

  private _button(mark: Mark): HTMLElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'shardnb-mark';
    paint(button, mark.tone);
    button.textContent = mark.text;
    button.title = mark.title;
    button.setAttribute('aria-label', fill(EDITOR.markLabel, { title: mark.title }));
    button.addEventListener('click', () => this.open(mark));
    return button;
  }
}

class TypeWidget extends WidgetType {
  constructor(private readonly type: Type) {
    super();
  }

  override eq({ type }: TypeWidget): boolean {
    return JSON.stringify(type) === JSON.stringify(this.type);
  }

  override toDOM(): HTMLElement {
    const { text, state, changed } = this.type;
    const box = document.createElement('span');
    box.className = 'shardnb-type';
    box.textContent = `: ${text}`;
    if (state) {
      box.dataset.state = state;
      box.title = EDITOR.previewTitle;
    }
    box.toggleAttribute('data-changed', Boolean(changed));
    return box;
  }
}

/** A line of its own below the edited one: at the end of a long line it would be out of sight. */
class SignWidget extends WidgetType {
  constructor(private readonly sign: Sign) {
    super();
  }

  override eq({ sign }: SignWidget): boolean {
    return JSON.stringify(sign) === JSON.stringify(this.sign);
  }

  override toDOM(): HTMLElement {
    const { kind, text } = this.sign;
    const box = document.createElement('div');
    box.className = 'shardnb-sign';
    box.dataset.kind = kind;
    box.textContent = text;
    if (kind === 'hint') {
      box.setAttribute('role', 'status');
    }
    return box;
  }

  override get estimatedHeight(): number {
    return 20;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}
