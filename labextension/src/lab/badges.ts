/** Badges at the ends of an editor's lines, and types behind its names. */

import { Extension, MapMode, Range, StateEffect, StateField, Text } from '@codemirror/state';
import { Decoration, DecorationSet, EditorView, ViewPlugin, WidgetType } from '@codemirror/view';
import { ICodeCellModel } from '@jupyterlab/cells';
import { ISignal } from '@lumino/signaling';

import { EDITOR } from '../generated/vocabulary';
import { paint } from '../view/badge';
import { fill } from '../view/slots';
import { Mark, Note, behind } from './notes';
import { Reports } from './reports';

/** What the reader wants to see in editors. */
export interface Wishes {
  badges: boolean;
  types: boolean;
  changed: ISignal<unknown, void>;
}

/** Shows a collective in its report. */
export type Open = (mark: Mark) => void;

/** A note where its line begins now, or null once its line is deleted. */
interface PlacedNote {
  at: number | null;
  note: Note;
}

interface Placed {
  notes: readonly PlacedNote[];
  decorations: DecorationSet;
}

/** What is shown: nothing of `stale` notes, whose cell would no longer run as it ran. */
type Showing = Pick<Wishes, 'badges' | 'types'> & { stale: ReadonlySet<Note> };

const renew = StateEffect.define<{ notes: readonly Note[]; showing: Showing }>();

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
  holds: (note: Note) => boolean;
  changed: ISignal<unknown, void>;
}

/** Bring what the reports say into the editor, now and whenever that changes. */
export function feed(cell: string, source: Source, wishes: Wishes): Extension {
  return ViewPlugin.define(view => {
    let alive = true;
    let due = false;
    const update = (): void => {
      if (!due) {
        due = true;
        // Outputs may change while the editor is in the middle of an update of its own.
        queueMicrotask(() => {
          due = false;
          if (alive) {
            const { badges, types } = wishes;
            const notes = source.about(cell);
            const stale = new Set(notes.filter(note => !source.holds(note)));
            view.dispatch({ effects: renew.of({ notes, showing: { badges, types, stale } }) });
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

/** Keep the notes at their lines through edits; a line that is no longer the same shows none. */
export function field(open: Open): Extension {
  let showing: Showing = { badges: true, types: true, stale: new Set() };
  const draw = (notes: readonly PlacedNote[], doc: Text): Placed => ({
    notes,
    decorations: Decoration.set(notes.flatMap(placed => ranges(placed, doc, showing, open)), true)
  });
  return StateField.define<Placed>({
    create: () => ({ notes: [], decorations: Decoration.none }),
    update: (placed, transaction) => {
      const { newDoc: doc, changes } = transaction;
      for (const effect of transaction.effects) {
        if (effect.is(renew)) {
          showing = effect.value.showing;
          return draw(placing(effect.value.notes, doc, placed.notes), doc);
        }
      }
      if (!transaction.docChanged) {
        return placed;
      }
      const moved = placed.notes.map(({ at, note }) => ({
        at: at === null ? null : changes.mapPos(at, 1, MapMode.TrackDel),
        note
      }));
      return draw(moved, doc);
    },
    provide: found => EditorView.decorations.from(found, placed => placed.decorations)
  });
}

/** Place notes by their line numbers; those that were placed before stay where edits took them. */
function placing(
  notes: readonly Note[],
  doc: Text,
  before: readonly PlacedNote[]
): readonly PlacedNote[] {
  const known = new Map(before.map(placed => [placed.note, placed]));
  return notes
    .filter(note => note.line >= 1 && (known.has(note) || note.line <= doc.lines))
    .map(note => known.get(note) ?? { at: doc.line(note.line).from, note });
}

function ranges(
  { at, note }: PlacedNote,
  doc: Text,
  showing: Showing,
  open: Open
): Range<Decoration>[] {
  const line = at === null || showing.stale.has(note) ? null : doc.lineAt(at);
  if (line === null || line.text.trimEnd() !== note.code.trimEnd()) {
    return [];
  }
  const found: Range<Decoration>[] = [];
  for (const type of showing.types ? note.types : []) {
    const place = behind(type.name, line.text);
    if (place !== null) {
      const widget = new TypeWidget(type.text);
      found.push(Decoration.widget({ widget, side: 1 }).range(line.from + place));
    }
  }
  if (showing.badges && note.marks.length) {
    const widget = new BadgeWidget(note.marks, open);
    found.push(Decoration.widget({ widget, side: 2 }).range(line.to));
  }
  return found;
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
  constructor(private readonly text: string) {
    super();
  }

  override eq(other: TypeWidget): boolean {
    return other.text === this.text;
  }

  override toDOM(): HTMLElement {
    const box = document.createElement('span');
    box.className = 'shardnb-type';
    box.textContent = `: ${this.text}`;
    return box;
  }
}
