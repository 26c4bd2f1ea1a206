/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Documents as they arrive: a stream of YAML documents, each ended by a line "...".
 *
 * Reading never blocks, so a controller that sends half a document delays nothing.
 */
#ifndef ENGINE_DOCUMENT_STREAM_H
#define ENGINE_DOCUMENT_STREAM_H

#include "documents.h"

struct input; /* opaque */

/**
 * @brief Begin to read documents.
 *
 * On a pipe, a document that is cut short by the end is not run.
 *
 * @param input Takes the stream.
 * @param fd Open descriptor; stays the caller's.
 * @param whole The last document may lack its "..." (a file).
 * @param transports As document_parse().
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, and the caller ends it by input_close(); -ENOMEM.
 */
int input_open(struct input **input, int fd, bool whole, const struct transport *const *transports,
               struct err *err);
/**
 * @brief End reading; the descriptor stays the caller's.
 *
 * @param input Stream.
 */
void input_close(struct input *input);

/**
 * @brief Take in what is there.
 *
 * @param input Stream.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, or a negative errno when reading failed or a document is too large.
 */
int input_read(struct input *input, struct err *err);
/**
 * @brief Return whether the end of the stream has been read; documents may still wait.
 *
 * @param input Stream.
 * @return True: it has.
 */
bool input_ended(const struct input *input);

/**
 * @brief Return the next whole document; empty ones are passed over.
 *
 * @param input Stream.
 * @param document Takes the document.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 1 and *document, which the caller frees; 0: none is complete; -EINVAL: it is refused.
 */
int input_next(struct input *input, struct document **document, struct err *err);

#endif
