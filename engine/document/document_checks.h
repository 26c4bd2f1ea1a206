/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What no table of keys can say of a job or a trial: keys that need or exclude each other.
 */
#ifndef ENGINE_DOCUMENT_CHECKS_H
#define ENGINE_DOCUMENT_CHECKS_H

#include "documents.h"

/**
 * @brief Check a job document.
 *
 * @param job Job document.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EINVAL with the sentence of the first rule that is broken.
 */
int check_job(const struct doc_job *job, struct err *err);
/**
 * @brief Check a trial document.
 *
 * @param trial Trial.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EINVAL with the sentence of the first rule that is broken.
 */
int check_trial(const struct doc_trial *trial, struct err *err);

#endif
