"""Cells made of holders of every kind, what a cell does with them, and values that it puts in."""

from __future__ import annotations

import functools
import random
import re

PRELUDE = """
import jax, jax.numpy as jnp, numpy as np, random, collections, functools, itertools, queue
import threading, types, contextvars, dataclasses, weakref
from collections import (ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque,
                         namedtuple)
Pair = namedtuple('Pair', 'a b')
class MyList(list): pass
class MyDict(dict):
    def __setitem__(self, key, value): raise KeyError('use put')
    def put(self, key, value): super().__setitem__(key, value)
class Thing:
    shared = None
    def __init__(self, w=None): self.w, self.log = w, []
    def step(self, v): self.w = v; self.log.append(v); return v
class Slots:
    __slots__ = ('a', '__b', '__dict__')
    def __init__(self): self.a, self.__b = 1, 2
    def both(self, v): self.a = self.__b = v
class Meta(type):
    def __setattr__(cls, name, value): super().__setattr__(name, value)
class WithMeta(metaclass=Meta): pass
@dataclasses.dataclass
class Data:
    w: object
    n: int = 0
@dataclasses.dataclass(frozen=True)
class Frozen:
    w: object
@jax.tree_util.register_pytree_node_class
class Node:
    def __init__(self, w, tag): self.w, self.tag = w, tag
    def tree_flatten(self): return (self.w,), self.tag
    @classmethod
    def tree_unflatten(cls, tag, children): return cls(*children, tag)
def counting():
    n, seen = 0, []
    def count(v):
        nonlocal n
        n += 1
        seen.append(v)
        return n
    return count
x = jnp.arange(4.0)
host = np.arange(3.0) + 2.0 ** 40
random.seed(1)
np.random.seed(1)
"""

# For each kind of holder: how it is made, and what a cell does with it; V is a value.
HOLDERS = {
    "list": ("h = [x, 1]", ["h.append(V)", "h[0] = V", "h.insert(0, V)", "r = h[0]", "h *= 2"]),
    "empty list": ("h = []; put = h.append", ["put(V)", "h += [V, V]", "r = h"]),
    "dict": ("h = {'w': x, 'n': 1}; k = h", ["h['w'] = V", "k['new'] = V", "h.pop('w')"]),
    "order": ("h = OrderedDict(w=x, b=2)", ["h.move_to_end('w')", "h['w'] = V", "h['c'] = V"]),
    "defaultdict": ("h = defaultdict(list)", ["h['a'].append(V)", "h['b'] += [V, 1]"]),
    "counter": ("h = Counter('abca')", ["h['a'] += 1", "h['z'] = V", "h.update('zz')"]),
    "set": ("h = {1, 2}", ["h.add(len(str(3)))", "h.discard(1)", "r = sorted(h); q = V"]),
    "frozenset": ("h = frozenset({1})", ["h = h | {2}; r = V", "r = [h, V]"]),
    "tuple": ("h = (x, [x], 3)", ["h[1].append(V)", "r = h + (V,)", "h = (V, h)", "r = h"]),
    "namedtuple": ("h = Pair(x, [1])", ["h = h._replace(a=V)", "h.b.append(V)", "r = Pair(V, h)"]),
    "dataclass": ("h = Data(x); k = [h]", ["h.w = V", "k[0].n += 1; h.extra = V", "r = Data(V)"]),
    "frozen": ("h = Frozen([x])", ["h.w.append(V)", "h = dataclasses.replace(h, w=V)", "r = h.w"]),
    "user dict": ("h = UserDict(a=x)", ["h['a'] = V", "h.data['b'] = V", "del h['a']; r = V"]),
    "user list": ("h = UserList([x])", ["h.append(V)", "h[0] = V", "r = h + [V]"]),
    "own list": ("h = MyList([x]); h.tag = 1", ["h.append(V)", "h.tag = V", "r = MyList([V])"]),
    "own dict": ("h = MyDict(a=x)", ["h.put('a', V)", "h.put('b', V)", "r = MyDict(a=V)"]),
    "chain": (
        "h = ChainMap({'a': x}, {'b': 1})",
        ["h['a'] = V", "h['b'] = V", "h = h.new_child()"],
    ),
    "deque": ("h = deque([x, 1], maxlen=3)", ["h.append(V)", "h.rotate(1); h.appendleft(V)"]),
    "queue": ("h = queue.Queue()", ["h.put(V)", "h.put(V); r = h.get()", "h.put(h.qsize())"]),
    "heap": ("h = queue.PriorityQueue()", ["h.put((-h.qsize(), V)); h.put((-h.qsize(), V))"]),
    "object array": ("h = np.empty((2, 2), object)", ["h[0, 1] = V", "h[1, 1] = [V]"]),
    "host array": ("h = np.arange(3)", ["h[0] = 9", "h += 2; r = h.sum()", "r = np.sin(h); q = V"]),
    "bytes": ("h = bytearray(b'ab')", ["h += b'c'; r = V", "h[0] = 65"]),
    "object": (
        "h = Thing(x); k = h.step",
        ["h.step(V)", "k(V)", "h.w = V", "del h.log; h.new = V"],
    ),
    "slots": ("h = Slots()", ["h.a = V", "h.both(V)", "h.other = V", "del h.a"]),
    "class": (
        "h = Thing()",
        ["Thing.shared = V", "Thing.new = V", "h.shared = V; r = Thing.shared"],
    ),
    "metaclass": ("h = WithMeta", ["WithMeta.w = V", "h.w = [V]"]),
    "namespace": ("h = types.SimpleNamespace()", ["h.w = V", "h.a = h; h.w = [V]"]),
    "module": ("h = types.ModuleType('m')", ["h.w = V", "h.t = {}; h.t[1] = V"]),
    "closure": ("h = counting()", ["r = h(V)", "h(V); h(1)", "k = counting(); r = k(V)"]),
    "new closure": ("h = 1", ["w = V\ndef make(v): return lambda u: (u, v)\nr = make(w)"]),
    "defaults": ("def h(v=[]): v.append(1); return v", ["h().append(V)", "h.__defaults__ = (V,)"]),
    "attribute": ("def h(): return h.w", ["h.w = V", "h.w = V; r = h()"]),
    "partial": (
        "h = functools.partial(len, [x])",
        ["r = functools.partial(max, V)", "h.keywords['k'] = V"],
    ),
    "global": ("total = 0\ndef h(v):\n global total\n total = v", ["h(V)", "h(V); r = total"]),
    "variable": (
        "h = contextvars.ContextVar('h', default=1)",
        ["h.set(V);", "_t = h.set(1); q = V"],
    ),
    "thread": ("h = threading.local(); h.a = 1", ["h.w = V", "h.a = V"]),
    "loop": ("h = [x]; h.append(h)", ["h.append(V)", "r = h[1][1][0]", "h[0] = V"]),
    "ring": (
        "h = Thing(); h.me = h; k = {'h': h}; h.k = k",
        ["h.w = V", "k['v'] = V", "h.k['h'].me.w = V"],
    ),
    "node": ("h = Node(x, 'a')", ["h.w = V", "h.tag = 'b'; h.extra = V", "r = Node(V, 'c')"]),
    "alias": ("h = {'a': x}; k = [h, h]", ["k[0]['a'] = V; r = k[1]['a']", "r = k[0] is h; q = V"]),
    "array alias": ("h = x; k = [x]", ["r = h is k[0]; q = V", "h = V; r = (h, k)"]),
    "iterator": ("h = iter([x, 1, x])", ["r = next(h)", "next(h); r = [next(h), V]"]),
    "zip": ("h = zip([1, 2], 'ab')", ["r = next(h)", "r = list(h); q = V"]),
    "count": ("h = itertools.count()", ["r = next(h) + next(h)", "r = [next(h), V]"]),
    "generator": ("h = (i * i for i in range(5))", ["r = next(h)", "next(h); r = [next(h), V]"]),
    "new generator": ("h = 1", ["r = (V for _ in range(2)); next(r)", "r = iter([V])"]),
    "random": ("h = random.Random(3)", ["r = h.random(); q = V", "r = random.random() * V"]),
    "numpy random": (
        "h = np.random.default_rng(3)",
        ["r = h.random()", "r = np.random.rand() * V"],
    ),
    "jit": (
        "@jax.jit\ndef h(v): return v + x",
        ["r = h(jnp.asarray(V))", "x = V; r = h(jnp.ones(4))"],
    ),
    "cached": ("@functools.lru_cache\ndef h(n): return jnp.ones(n)", ["r = h(2)", "r = h(3) + 1"]),
    "weak": ("k = Thing(); h = weakref.ref(k)", ["h().w = V", "r = h() is k"]),
    "weak values": (
        "h = weakref.WeakValueDictionary()",
        ["h['a'] = x * 2", "k = Thing(V); h['a'] = k"],
    ),
    "deleted": ("h = 1; k = [x]", ["del h; r = V", "del k[0]; q = V"]),
    "printed": ("h = 1", ["print('hello', h); r = V", "for i in range(3): print(i, end=',')"]),
}
VALUES = [
    "x * 2",
    "x.sum()",
    "jnp.tanh(x)",
    "3",
    "x",
    "host + 1",
    "[x + 1, 2]",
    "(x * 3, 'a')",
    "None",
]
REFUSED = {"variable", "new generator", "cached", "weak values"}


def generated(seed):
    """Return the set-up of a cell, its text, and the kinds of its holders."""
    chance = random.Random(seed)  # noqa: S311  the same cells each time
    first = list(HOLDERS)[seed % len(HOLDERS)]
    kinds = [first] if chance.random() < 0.6 else [first, chance.choice(list(HOLDERS))]
    setup, lines = [PRELUDE], []
    for number, kind in enumerate(kinds):
        make, actions = HOLDERS[kind]
        renamed = functools.partial(_renamed, number=number)
        setup.append(renamed(make))
        chosen = [chance.choice(actions) for _ in range(chance.randint(1, 2))]
        lines += [renamed(action).replace("V", chance.choice(VALUES)) for action in chosen]
    if chance.random() < 0.3:
        lines.append("y = x + 1")
    return "\n".join(setup), "\n".join(lines), set(kinds)


def _renamed(text, number):
    return re.sub(r"\b([hkrq])\b", rf"\g<1>{number}", text)
