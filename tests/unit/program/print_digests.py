"""Run as a script: captures specimens, in order or in reverse, and prints program and kernel digests as JSON.

Arguments: "everyday" or "all", then "in-order" or "reversed".
"""

import json
import sys

import program_specimens as specimens

from kernel_audit.program import capture


def main():
    which, order = sys.argv[1:]
    chosen = [each for each in specimens.SPECIMENS if which == "all" or not each.slow]
    digests = {}
    for specimen in reversed(chosen) if order == "reversed" else chosen:
        function, operands = specimen.make()
        program = capture(function, operands, keywords=specimen.keywords)
        digests[specimen.name] = [program.digest, *(kernel.digest for kernel in program.kernels)]
    print(json.dumps(digests, sort_keys=True))


main()
