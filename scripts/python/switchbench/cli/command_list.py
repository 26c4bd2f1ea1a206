# SPDX-License-Identifier: BSD-3-Clause
"""The commands, each with what it does: known without loading their modules."""

# In the order of --help.
COMMANDS = {
    "run": "run the tests and print what they gave",
    "table": "print the table of a finished run again",
    "report": "write a finished run as one HTML file that opens offline",
    "locate": "say where the network breaks, by a finished run's flows",
    "compare": "compare switches, firmware versions or transports",
    "import": "read results of HPCC, IMB, OSU, iperf3 or perftest",
    "verify": "check a result's hashes, clauses, verdict and signature",
    "sign": "sign a finished run's results",
    "plan": "show tests, expected time, phases and flows; send nothing",
    "topology": "a network's diameter, bisection, oversubscription, cost",
    "predict": "predict each flow's rate, and compare it with results",
    "lab": "make, show, visit or remove a lab",
    "push": "copy the engine to a site's hosts",
    "bind": "give PCI ports to DPDK, with a journal",
    "restore": "give PCI ports back to their drivers",
    "doctor": "say what can be run here, and as whom; or on a site's hosts",
    "completion": "print completion for bash, zsh or fish",
    "help": "show the help of a command",
}
