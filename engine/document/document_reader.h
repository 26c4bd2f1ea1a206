/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The node's documents: YAML in, plain data out.
 *
 * Tables of keys refuse unknown keys and wrong types with their position (mapping_reader.h), and
 * document_checks.c what no table can say.
 */
#ifndef ENGINE_DOCUMENT_READER_H
#define ENGINE_DOCUMENT_READER_H

#include "documents.h"

/**
 * @brief Parse and check one document.
 *
 * @param document Takes the document.
 * @param text Text of one document.
 * @param transports Transports with the options that a trial can have, NULL-terminated; must
 *        outlive the document.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, and the caller frees it by document_free(); -EINVAL with a sentence that names line
 *        and column.
 */
int document_parse(struct document **document, const struct mapping_text *text,
                   const struct transport *const *transports, struct err *err);
/**
 * @brief Return what kind of document it is.
 *
 * @param document Document.
 * @return Kind.
 */
enum document_kind document_kind(const struct document *document);
/**
 * @brief Free a document.
 *
 * @param document Document.
 */
void document_free(struct document *document);

#endif
