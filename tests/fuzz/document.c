/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fuzzing of the node's documents: the input is a stream of JSON lines, read as from a pipe. A
 * refusal has a sentence; an accepted document is one known document.
 */
#include "documents.h"
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

#define MOST_BYTES 32768 /* a pipe takes this many bytes at once */

extern const struct transport transport_udp;

static void take_all(struct input *input)
{
    struct document *document = NULL;
    struct err err = {""};
    int rc;

    while ((rc = input_next(input, &document, &err)) != 0) {
        if (rc < 0) {
            check(err.text[0] != '\0');
            return;
        }
        document_free(document);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct transport *const transports[] = {&transport_udp, NULL};
    struct input *input;
    struct err err = {""};
    int ends[2];

    if (size > MOST_BYTES)
        return 0;
    check(pipe(ends) == 0 && write(ends[1], bytes, size) == (ssize_t)size);
    close(ends[1]);
    check(input_open(&input, ends[0], true, transports, &err) == 0);
    while (input_read(input, &err) == 0 && !input_ended(input))
        ;
    take_all(input);
    input_close(input);
    close(ends[0]);
    return 0;
}
