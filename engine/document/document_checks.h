/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What no table of keys can say of a job or a trial: keys that need or exclude each other.
 */
#ifndef ENGINE_DOCUMENT_CHECKS_H
#define ENGINE_DOCUMENT_CHECKS_H

#include "documents.h"

/* 0, or -EINVAL with the sentence of the first rule that is broken. */
int check_job(const struct doc_job *job, struct err *err);
int check_trial(const struct doc_trial *trial, struct err *err);

#endif
