"""Timing: clocks, plans, the pairs of a process, whole sessions, and a world to try all of it in.

Measuring, judging and recording lie apart: a process gives columns of samples (`run_process`), `assemble` makes a `Session` of
them, and `statistics.session_verdict` judges that, here or elsewhere. Nothing in this package imports JAX; programs come as
`Side`s.
"""

from kernel_audit.timing.clock import Clock, MeasuredClock, cpu_clock, host_clock
from kernel_audit.timing.plan import plan_session, process_seed, process_steps
from kernel_audit.timing.process import run_process
from kernel_audit.timing.selection import Selected, select_and_confirm
from kernel_audit.timing.side import Doubled, Guard, Judge, Operands, Side, Sides
from kernel_audit.timing.simulated import Noise, SimulatedJudge, Stage, World, simulate_session
from kernel_audit.timing.whole import BOUNDARY, assemble, pilot_logs

__all__ = [
    "BOUNDARY",
    "Clock",
    "Doubled",
    "Guard",
    "Judge",
    "MeasuredClock",
    "Noise",
    "Operands",
    "Selected",
    "Side",
    "Sides",
    "SimulatedJudge",
    "Stage",
    "World",
    "assemble",
    "cpu_clock",
    "host_clock",
    "pilot_logs",
    "plan_session",
    "process_seed",
    "process_steps",
    "run_process",
    "select_and_confirm",
    "simulate_session",
]
