/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief `switchbench-node --plan`: prints the plan of one `plan` document, sends nothing, so that
 * the command shows exactly the flows that the nodes will run.
 */
#ifndef ENGINE_PLAN_PRINTER_H
#define ENGINE_PLAN_PRINTER_H

#include "documents.h"
#include "record_writer.h"

/**
 * @brief Print a plan as records.
 *
 * @param records Writer of records.
 * @param doc Document.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, or a negative errno with the sentence.
 */
int plan_print(struct records *records, const struct doc_plan *doc, struct err *err);

#endif
