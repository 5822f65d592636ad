/** Reports written by hand, as the data that their JSON holds, with words that only name things. */

type Data = Record<string, any>;

/** Give a report's data with a text for each thing that has one: its kind and what it is of. */
export function spoken(data: Data): Data {
  const arrays = [...data.inputs, ...(data.outputs ?? []), ...(data.values ?? [])];
  arrays.push(...(data.findings ?? []).flatMap((one: Data) => one.values ?? []));
  const found: Data[] = data.collectives ?? [];
  const told = (text: string) => found.map(one => `${text} of ${one.id}`);
  const lines = new Map<number, Data[]>();
  for (const one of found) {
    const line = one.frames[0]?.line ?? 0;
    lines.set(line, [...(lines.get(line) ?? []), one]);
  }
  return {
    ...data,
    said: {
      header: ['mesh', 'devices'],
      verdict: 'the verdict',
      memory: ['all', 'an', 'o', 't'],
      inputs: rows(data.inputs),
      outputs: rows(data.outputs ?? []),
      values: rows(data.values ?? []),
      rows: found.map(one => row(one)),
      about: 'about it',
      points: (data.findings ?? []).map((one: Data, finding: number) => ({
        ...{ head: one.kind, cost: 'its cost', cause: one.message, tone: 'amber', finding },
        edits: [{ code: 'x = f(x)', effect: 'the effect' }]
      })),
      lines: [
        [...lines].map(([line, led]) => ({
          line,
          badges: led.slice(0, 4).map(one => badge(one.id))
        }))
      ],
      arrays: {
        type: column(arrays.map(one => `type of ${one.name}`)),
        held: column(['held']),
        why: column(arrays.map(() => '{name} is {type}, from {from}'))
      },
      collectives: {
        name: column(told('name')),
        cause: column(told('cause')),
        at: column(told('at')),
        because: column(found.map(one => (one.why ? '{why}' : 'because of {producer}'))),
        made: column(['{producer} is sharded']),
        size: column(told('size')),
        trips: column([' x4']),
        grouping: column(['4 groups'])
      },
      ...data.said
    }
  };
}

function badge(id: number): Data {
  const texts = { head: `head of ${id}`, sends: `sends of ${id}`, mark: `mark of ${id}` };
  return { ids: String(id), ...texts, cause: `cause of ${id}`, tone: 'amber' };
}

function row({ id }: Data): Data {
  const texts = { name: `name of ${id}`, what: `what of ${id}`, times: 'x1', sends: `sends of ${id}` };
  return { ids: String(id), ...texts, cause: `cause of ${id}`, tone: 'neutral' };
}

/** A row for each array. */
function rows(arrays: Data[]): Data {
  return {
    summary: `${arrays.length} arrays`,
    names: arrays.map(one => one.name),
    sizes: arrays.map(() => '1 B'),
    members: arrays.map((_, i) => String(i))
  };
}

function column(all: string[]): Data {
  const texts = [...new Set(all)];
  return { texts, ...(texts.length > 1 && { at: all.map(text => texts.indexOf(text)).join(' ') }) };
}

/** One all-reduce at the first line, on a mesh of 4 x 2. */
export function sketch(): Data {
  return {
    title: 'cell',
    mesh: {
      axes: [
        { name: 'data', size: 4 },
        { name: 'model', size: 2 }
      ],
      device_ids: [0, 1, 2, 3, 4, 5, 6, 7],
      emulated: true
    },
    inputs: [
      array('x', [256, 512], [['data'], ['model']], [64, 256]),
      array('W', [512, 1024], [['model'], []], [256, 1024])
    ],
    outputs: [array('y', [256, 1024], [['data'], []], [64, 1024])],
    collectives: [allReduce()],
    memory: { arguments: 1114112, outputs: 262144, temporaries: 0 },
    sources: [{ name: 'cell', text: 'h = x @ W\ny = jnp.tanh(h)\n', cell_id: 'cell-a' }],
    versions: { jax: '0.12.0.1' },
    run: { compile_seconds: 0.18 },
    version: 1,
    group_table: [
      [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7]
      ]
    ]
  };
}

export function allReduce(): Data {
  return {
    id: 0,
    kind: 'all-reduce',
    axes: ['model'],
    groups: 0,
    dtype: 'f32',
    shape: [64, 1024],
    wire_bytes: 262144,
    generated: true,
    asked_by: 'inferred',
    reason: 'partial-sum',
    why: 'both operands of x @ W are sharded over model on the contracting dim.',
    fixes: [
      {
        edit: "x=P('data') W=P(None, 'model')",
        collectives: [1, 0],
        wire_bytes: [262144, 0],
        memory_bytes: [0, 131072]
      }
    ],
    frames: [{ source: 0, line: 1 }],
    instruction: '%all-reduce = f32[64,1024] all-reduce(%dot)'
  };
}

export function array(name: string, shape: number[], spec: unknown, shard: number[]): Data {
  return { name, dtype: 'f32', shape, spec, shard_shape: shard };
}

/** Two arrays that placements reach in three steps. */
export function spread(): Data[] {
  const step = (number: number, op: string, direction: string, source: string, target: string) => ({
    ...{ number, op, direction, source, target },
    location: { source: 0, line: op === 'tanh' ? 2 : 1 }
  });
  return [
    {
      ...array('h', [256, 1024], [['data'], []], [64, 1024]),
      location: { source: 0, line: 1 },
      origins: [
        {
          axis: 'data',
          kind: 'input',
          name: 'x',
          steps: [step(3, 'dot_general', 'forward', 'x', 'h')]
        }
      ]
    },
    {
      ...array('y', [256, 1024], [['data'], ['model']], [64, 512]),
      location: { source: 0, line: 2 },
      origins: [
        {
          axis: 'data',
          kind: 'input',
          name: 'x',
          steps: [step(5, 'tanh', 'forward', 'h', 'y')],
          after: 0
        },
        {
          axis: 'model',
          kind: 'constraint',
          name: "P(None, 'model')",
          steps: [step(7, 'add', 'backward', 'z', 'y')]
        }
      ]
    }
  ];
}

/** As many collectives as you like, of three kinds, on ten lines. */
export function many(number: number): Data {
  const kinds = ['all-reduce', 'all-gather', 'reduce-scatter'];
  const collectives = Array.from({ length: number }, (_, id) => ({
    ...allReduce(),
    id,
    kind: kinds[id % 3],
    wire_bytes: 1024 * (id + 1),
    frames: [{ source: 0, line: (id % 10) + 1 }]
  }));
  const text = Array.from({ length: 10 }, (_, i) => `step_${i}()`).join('\n');
  return { ...sketch(), collectives, sources: [{ name: 'cell', text }] };
}

/** Texts that would do harm where they were taken for markup. */
export const HOSTILE = '<img src=x onerror="globalThis.harmed = true"><script>harm()</script>';

/** Two collectives that were measured on eight devices: the one that sends less takes longer. */
export function timed(): Data {
  const data = sketch();
  data.collectives = [allReduce(), { ...allReduce(), id: 1 }];
  const line = (_: unknown, position: number) => ({
    ...{ name: `CPU ${position}`, position, ids: [0, 1] },
    ...{ computing: [0, 1e-6], communicating: [1e-6, 6e-6, 6e-6, 8e-6] }
  });
  data.profile = {
    ...{ runs: 3, devices: 8, step_seconds: 8e-6, communication_seconds: 7e-6, exposed_seconds: 7e-6 },
    timeline: Array.from({ length: 8 }, line)
  };
  const measured = { measured: 'A run takes 8 us.', timeline: 'one run of 8 us.' };
  const rows = [0, 1].map(id => ({
    ...{ ids: String(id), name: `name of ${id}`, what: '', times: '1', sends: '', cause: '' },
    ...{ tone: 'neutral', measured: `took of ${id}`, seconds: 5 - id, bytes: 1 + id }
  }));
  const { said } = spoken(data);
  const collectives = { ...said.collectives, measured: { texts: ['measured of 0', 'measured of 1'], at: '0 1' } };
  return { ...data, said: { ...measured, rows, collectives } };
}
