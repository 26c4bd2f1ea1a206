/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Reports of a switch's counts as JSON records on standard output, one per line.
 *
 * A report shows the counts at one point of time. A child process has a copy of these counts and
 * writes them, so that a slow reader delays no frame.
 */
#ifndef MODEL_SWITCH_REPORT_H
#define MODEL_SWITCH_REPORT_H

#include "describe.h"
#include "port_array.h"

#include <sys/types.h>

struct switch_report {
    const struct port_array *port_array;
    const struct description *description;
    unsigned number; /**< number of the report, from 1 */
    int64_t began_ns;
    pid_t writer; /**< child process that writes the present report; 0: none */
    int status;   /**< exit status of the last writer */
};

/**
 * @brief Initialise the reports of a switch, and write its record `ready`.
 *
 * @param report Report.
 * @param port_array Ports.
 * @param description Description.
 */
void switch_report_open(struct switch_report *report, const struct port_array *port_array,
                        const struct description *description);

/**
 * @brief Begin a report when the previous one is done; skip the report if no child process can be
 * started.
 *
 * @param report Report.
 * @param reason Word for the report's total.
 */
void switch_report_begin(struct switch_report *report, const char *reason);
/**
 * @brief Return whether the last report is completely written, and no child process writes any
 * more.
 *
 * @param report Report.
 * @return True: no report is being written.
 */
bool switch_report_done(struct switch_report *report);
/**
 * @brief Wait until the present report is written, then write the last report.
 *
 * @param report Report.
 * @param reason Word for the report's total.
 * @param until_ns Time of CLOCK_MONOTONIC at which the function gives up, ns.
 * @return False: the last report was not complete by then.
 */
bool switch_report_end(struct switch_report *report, const char *reason, int64_t until_ns);

#endif
