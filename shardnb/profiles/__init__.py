"""Measured time: traces of the profiler, and what they show of a program's collectives.

`messages` and `xplane` read a trace's file, `executions` the operations that devices executed,
`instructions` which of them are whose collective, `statistics` what was measured; `measure` puts
that into a report. `running` runs a program under the profiler, `reading` reads a trace from
anywhere.
"""
