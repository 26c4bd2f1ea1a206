/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Documents as they arrive: a stream of YAML documents, each ended by a line "...". Reading never
 * blocks, so a controller that sends half a document delays nothing.
 */
#ifndef ENGINE_DOCUMENT_STREAM_H
#define ENGINE_DOCUMENT_STREAM_H

#include "document_reader.h"

struct input; /* opaque */

/* Reads from `fd`, which stays the caller's, as do its flags. `transports`: as document_parse has
 * them. `whole`: the last document may lack its "..." (a file); on a pipe, a document cut short by
 * the end is not run. */
int input_open(struct input **input, int fd, bool whole, const struct transport *const *transports,
               struct err *err);
void input_close(struct input *input);

/* Takes in what is there. 0, or a negative errno when reading failed or a document is too large. */
int input_read(struct input *input, struct err *err);
/* The end of the stream has been read; documents may still wait. */
bool input_ended(const struct input *input);

/* The next whole document: 1 and *document (owned by the caller), 0 when none is complete,
 * -EINVAL when it is refused. Empty documents are passed over. */
int input_next(struct input *input, struct document **document, struct err *err);

#endif
