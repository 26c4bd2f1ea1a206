# SPDX-License-Identifier: BSD-3-Clause
"""Smokes: the tests of labs that the quick tier runs, each with what it stands for.

Together they start nodes in every way, send by every transport that labs carry, on every kind of
lab, and do to runs what matters most. `conftest.py` marks them `smoke`; `scripts/test --all` runs
them and all others.
"""

SMOKES = {
    # The documentation's commands: no lab, no time.
    "test_docs.py::test_the_parser_takes_it": "every command that is shown",
    "test_docs.py::test_the_engine_has_these_options": "every option of the engine that is shown",
    # Labs: bridges, Open vSwitch, the model, and without root.
    "test_lab.py::test_up_connects_everything_and_down_leaves_nothing[one-switch-bridges]": (
        "bridges"
    ),
    "test_lab.py::test_a_second_run_is_refused_and_the_holder_named": "a second run on a lab",
    "test_lab.py::test_what_a_killed_run_left_is_cleaned[bridges]": "after a killed run",
    "test_lab_rootless.py::test_a_session_carries_traffic_and_leaves_nothing": "without root",
    "test_lab.py::test_up_connects_everything_and_down_leaves_nothing[one-switch-ovs]": (
        "Open vSwitch"
    ),
    "test_detection.py::test_a_fault_is_named[drop]": "the modelled switch",
    # What is measured.
    "test_show.py::test_every_pattern_of_frames_arrives_whole_and_the_kernel_agrees[one-switch]": (
        "dpdk, and the kernel's own counters"
    ),
    "test_truth.py::test_what_the_switch_drops_went_missing_in_the_network[udp]": "udp, and loss",
    "test_queues.py::test_queues_share_a_port": "several queues",
    "test_latency.py::test_a_full_queue_is_seen_in_the_round_trip": "round trips",
    "test_steps.py::test_steps": "schedules",
    "test_messages.py::test_sweep": "messages there and back",
    "test_routed.py::test_messages_pass_the_nodes_predicted": "nodes that forward",
    # Commands around a run.
    "test_campaign.py::test_a_rotation_finds_the_port[8]": "more ports than hosts",
    "test_acceptance.py::test_a_good_switch_passes": "run, sign and the verdict",
    "test_acceptance.py::test_both_are_as_they_were_signed": "verify",
    "test_live.py::test_metrics_are_there_while_the_run_lasts": "metrics",
    # Launchers.
    "test_by_hand.py::test_two_people_measure_a_cable[dpdk]": "by hand",
    "test_ssh.py::test_a_node_that_is_lost_is_named_and_ends[killed]": "ssh",
    "test_ssh.py::test_a_node_that_is_lost_is_named_and_ends[disconnected]": "a lost connection",
    "test_push.py::test_from_nothing_to_a_run": "push",
    # Faults.
    "test_faults.py::test_a_node_that_is_killed_is_named_and_earlier_phases_are_kept[tcp]": (
        "a killed node"
    ),
    "test_faults.py::test_a_signal_ends_a_run_in_order[2]": "Ctrl-C",
    "test_faults.py::test_a_silent_controller_stops_traffic": "no controller",
    "test_faults.py::test_pairs_without_a_way_are_named_before_load[dpdk]": "no way",
    "test_faults.py::test_a_flooding_switch_stops_the_run[pairs]": "a switch that floods",
}
