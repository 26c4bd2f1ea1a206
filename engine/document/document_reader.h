/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The node's documents: YAML in, plain data out. Tables of keys refuse unknown keys and wrong types
 * with their position (mapping_reader.h), and document_checks.c what no table can say.
 */
#ifndef ENGINE_DOCUMENT_READER_H
#define ENGINE_DOCUMENT_READER_H

#include "documents.h"

/* Parses and checks one document. On success *document is owned by the caller (document_free);
 * -EINVAL with a sentence that names line and column otherwise. `transports`, which ends with NULL
 * and lives longer, has the options that a trial can have. */
int document_parse(struct document **document, const struct mapping_text *text,
                   const struct transport *const *transports, struct err *err);
enum document_kind document_kind(const struct document *document);
void document_free(struct document *document);

#endif
