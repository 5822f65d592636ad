"""What each annotation of torch code does: the program is compiled without it, and compared."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from shardnb.bugs import Inconclusive, contained, refusable
from shardnb.collectives.find import find_collectives
from shardnb.compiler import Request
from shardnb.compiler.arrays import spec_of
from shardnb.compiler.compiling import compile_candidate, optimized_text
from shardnb.compiler.torch_program import GRADIENTS, TorchProgram
from shardnb.progress import bar_on
from shardnb.report import Collective, Report
from shardnb.report.model import Finding, Spec
from shardnb.sources.source_texts import Sources
from shardnb.texts import hlo
from shardnb.texts.hlo import Frame
from shardnb.torch.marks import Annotation, Variant, named_on
from shardnb.views import annotations as sentences
from shardnb.worker.process import CompilerAborted

# A program of a few layers takes 0.1 s for each annotation; one of a hundred annotations is
# explained sooner than compiled for each of them.
SECONDS = 20.0


class TorchCode(Protocol):
    """The function of a request that was made of torch code."""

    program: TorchProgram

    def varied(self, variant: Variant) -> Any:
        """Return the function whose annotations are traced in another way."""


@dataclass(frozen=True)
class _Marked:
    """An annotation of the program, or one that was made before it (`key` is then a name)."""

    key: int | str
    annotation: Annotation


def with_annotations(
    request: Request, function: TorchCode, report: Report, seconds: float = SECONDS
) -> Report:
    """Say in a report what each annotation does, from programs in which it is otherwise.

    `request` is the one before it was traced. Each such program is compiled in another process; at
    the end of the `seconds` the report says which were not.
    """
    marked = list(_marked(function.program))
    if not marked:
        return report
    study = _Study(request, function, report, time.monotonic() + seconds, seconds)
    found: list[Finding] = []
    with bar_on("annotations") as progress, contained("what the annotations do"):
        gradients = study.gradients()
        for number, one in enumerate(marked):
            progress("compiled", number, len(marked))
            found.append(study.finding(one, gradients))
    return replace(report, findings=(*report.findings, *found), sources=study.sources.texts())


def _marked(program: TorchProgram) -> Iterator[_Marked]:
    for name, tensor, sharding, frames in program.marked_before():
        shape, itemsize = tuple(tensor.shape), tensor.element_size()
        made = Annotation(-1, "mark_sharding", sharding, shape, itemsize, name, frames=frames)
        yield _Marked(name, made)
    yield from (_Marked(made.number, made) for made in program.annotations)


class _Study:
    """The programs of one request in which an annotation is otherwise."""

    def __init__(
        self, request: Request, function: TorchCode, report: Report, until: float, seconds: float
    ) -> None:
        self._request = request
        self._function = function
        self._report = report
        self._until = until
        self._seconds = seconds
        self._sent = Counter(map(_sent, report.collectives))
        texts = request.texts
        self.sources = Sources(report.sources, texts.files, texts.may_quote)

    def finding(self, marked: _Marked, gradients: dict[str, Spec | None]) -> Finding:
        """Return what is known of an annotation."""
        made = marked.annotation
        mesh = self._request.mesh
        spec = spec_of(named_on(mesh, made.sharding), len(made.shape)) or ()
        parts = [self._cost(made, spec), *self._gradient(marked, spec, gradients)]
        parts.append(self._absence(marked))
        places = self.sources.locate(tuple(Frame(f, line, name) for f, name, line in made.frames))
        return Finding(
            "annotation",
            ". ".join(
                f"{part[:1].upper()}{part[1:]}" if i else part for i, part in enumerate(parts)
            ),
            location=places[0] if places else None,
            subject=made.subject,
        )

    @staticmethod
    def _cost(made: Annotation, spec: Spec) -> str:
        if made.subject and not made.gradients:
            whole = math.prod(made.shape) * made.itemsize
            tiles = zip(made.shape, made.sharding.tiles, strict=True)
            held = math.prod(-(-size // parts) for size, parts in tiles) * made.itemsize
            return sentences.of_data(made.subject, made.function, spec, held, whole)
        return sentences.of_value(made.function, spec, 2 if made.gradients else 1)

    def _gradient(
        self, marked: _Marked, spec: Spec, gradients: dict[str, Spec | None]
    ) -> Iterator[str]:
        both = marked.annotation.gradients
        if str(marked.key) not in gradients:
            return
        alone = gradients[str(marked.key)]
        if both and self._is_time_left():
            variant = Variant(toggled=int(marked.key), gradients=True)
            alone = self._gradients_of(variant).get(str(marked.key))
        elif both:
            alone = None
        yield sentences.of_gradient(spec, alone, both=both)

    def _absence(self, marked: _Marked) -> str:
        if not self._is_time_left():
            return sentences.not_compared(self._seconds)
        try:
            lowered = self._lowered(Variant(without=marked.key))
            module = hlo.parse(optimized_text(lowered))
        except (Inconclusive, CompilerAborted) as error:
            return sentences.refused(str(error).partition("\n")[0])
        mesh, locate = self._report.mesh, self.sources.locate
        there = find_collectives(module, mesh, locate)
        added = _beyond(there, self._sent)
        removed = _beyond(self._report.collectives, Counter(map(_sent, there)))
        shown = replace(self._report, sources=self.sources.texts())
        return sentences.of_absence(added, removed, shown)

    def gradients(self) -> dict[str, Spec | None]:
        """Return how the gradient of each annotated tensor is sharded in the program as it is."""
        return self._gradients_of(Variant(gradients=True))

    def _gradients_of(self, variant: Variant) -> dict[str, Spec | None]:
        try:
            lowered = self._lowered(variant)
        except Inconclusive:
            return {}
        shapes = lowered.out_info[GRADIENTS]
        if not shapes:
            return {}
        try:
            compiled = compile_candidate(lowered)
        except (Inconclusive, CompilerAborted):
            return dict.fromkeys(shapes)
        shardings = compiled.output_shardings[GRADIENTS]
        return {key: spec_of(shardings[key], len(shapes[key].shape)) for key in shapes}

    def _lowered(self, variant: Variant) -> Any:
        """Trace and lower the program in another way; raises `Inconclusive` where it is refused."""
        function = self._function.varied(variant)
        specs = {**self._request.in_specs}
        if isinstance(variant.without, str):
            specs = function.program.in_specs()
        request = replace(
            self._request,
            function=function,
            in_specs=specs,
            placed_in_trace=function.program.in_specs,
        )
        with refusable():
            request, traced = request.as_placed(request.trace())
            return request.lower(traced)

    def _is_time_left(self) -> bool:
        return time.monotonic() < self._until


def _beyond(some: tuple[Collective, ...], known: Counter[Hashable]) -> list[Collective]:
    """Return the collectives that are more than those that are counted."""
    left, more = Counter(known), []
    for one in some:
        if left[_sent(one)] > 0:
            left[_sent(one)] -= 1
        else:
            more.append(one)
    return more


def _sent(one: Collective) -> Hashable:
    return one.kind, one.axes, one.dtype, one.shape, one.trips
