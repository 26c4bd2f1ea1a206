/* SPDX-License-Identifier: BSD-3-Clause */
#include "mapping_reader.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define TEXT_MAX 4096
#define PATH_MAX_BYTES 128

struct mapping_block {
    SLIST_ENTRY(mapping_block) next;
    max_align_t bytes[];
};

void mapping_free(struct mapping_memory *memory)
{
    while (!SLIST_EMPTY(memory)) {
        struct mapping_block *block = SLIST_FIRST(memory);

        SLIST_REMOVE_HEAD(memory, next);
        free(block);
    }
}

struct reader {
    yaml_document_t *document;
    struct mapping_memory *memory;
    unsigned first_line;
    size_t visited; /* nodes: an alias would make one visited twice */
    char path[PATH_MAX_BYTES];
    struct err *err;
};

static int refuse(const struct reader *reader, yaml_mark_t mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse(const struct reader *reader, yaml_mark_t mark, const char *format, ...)
{
    char what[320];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return err_set(reader->err, -EINVAL, "documents, line %zu, column %zu: %s %s",
                   reader->first_line + mark.line, mark.column + 1,
                   reader->path[0] != '\0' ? reader->path : "a document", what);
}

/* Memory of zeros for what `into` points to from now on. */
static void *point_to(struct reader *reader, uint8_t *into, size_t size)
{
    struct mapping_block *block = calloc(1, sizeof *block + size);
    void *memory = block != NULL ? block->bytes : NULL;

    if (block != NULL)
        SLIST_INSERT_HEAD(reader->memory, block, next);
    else
        err_set(reader->err, -ENOMEM, "out of memory");
    memcpy(into, &memory, sizeof memory);
    return memory;
}

static int read_value(struct reader *reader, const struct option *option, int number,
                      uint8_t *into);

static int read_mapping(struct reader *reader, const struct option *table, const yaml_node_t *node,
                        uint8_t *into)
{
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    size_t at = strlen(reader->path);
    uint64_t seen = 0;

    option_defaults(table, into);
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
        const char *name = key->type == YAML_SCALAR_NODE ? (char *)key->data.scalar.value : "";
        unsigned i = 0;
        int rc;

        reader->visited++;
        while (table[i].key != NULL && strcmp(table[i].key, name) != 0)
            i++;
        if (table[i].key == NULL)
            return refuse(reader, key->start_mark, "has no key '%.100s'", name);
        assert(i < 64);
        if ((seen >> i & 1) != 0)
            return refuse(reader, key->start_mark, "has the key '%s' twice", name);
        seen |= UINT64_C(1) << i;
        snprintf(reader->path + at, sizeof reader->path - at, "%s%s", at > 0 ? "." : "", name);
        rc = read_value(reader, &table[i], pair->value, into + table[i].offset);
        if (rc < 0)
            return rc;
        reader->path[at] = '\0';
        if (table[i].given > 0)
            *(bool *)(into + table[i].given) = true;
    }
    for (unsigned i = 0; table[i].key != NULL; i++)
        if (table[i].needed && (seen >> i & 1) == 0)
            return refuse(reader, node->start_mark, "lacks the key '%s'", table[i].key);
    return 0;
}

static int read_list(struct reader *reader, const struct option *option, const yaml_node_t *node,
                     uint8_t *into)
{
    const yaml_node_item_t *items = node->data.sequence.items.start;
    int64_t count = node->data.sequence.items.top - items;
    uint8_t *element;
    int rc = 0;

    if (count < option->min || count > option->max)
        return refuse(reader, node->start_mark, "has %lld to %lld entries, not %lld",
                      (long long)option->min, (long long)option->max, (long long)count);
    element = option->size > sizeof(void *)
                  ? into
                  : point_to(reader, into, (size_t)count * option->of->size);
    if (element == NULL)
        return -ENOMEM;
    memcpy(into - option->offset + option->count, &count, option->count_size);
    for (int64_t i = 0; i < count && rc == 0; i++, element += option->of->size)
        rc = read_value(reader, option->of, items[i], element);
    return rc;
}

static int read_number(struct reader *reader, const struct option *option, const yaml_node_t *node,
                       uint8_t *into)
{
    const char *text = (const char *)node->data.scalar.value;
    bool real = option->type == OPTION_REAL, any = option->max == OPTION_ANY_U64, fits;
    int base = strncmp(text, "0x", 2) == 0 ? 16 : 10;
    double value = 0;
    int64_t whole = 0;
    char *end;

    errno = 0;
    if (real)
        value = strtod(text, &end);
    else
        whole =
            any && text[0] != '-' ? (int64_t)strtoull(text, &end, base) : strtoll(text, &end, base);
    if (end == text || *end != '\0' || isspace((unsigned char)text[0]))
        return refuse(reader, node->start_mark, "is a number, not '%.100s'", text);
    if (real && option->max == 0 && !(isfinite(value) && value >= (double)option->min))
        return refuse(reader, node->start_mark, "is at least %lld, not %.40s",
                      (long long)option->min, text);
    if (real)
        fits = option->max == 0 || (value >= (double)option->min && value <= (double)option->max);
    else
        fits = errno == 0 && (any ? text[0] != '-' : whole >= option->min && whole <= option->max);
    if (!fits)
        return refuse(reader, node->start_mark, "is %lld to %llu, not %.40s%s%s",
                      (long long)option->min, (unsigned long long)option->max, text,
                      option->why != NULL ? ": " : "", option->why != NULL ? option->why : "");
    memcpy(into, real ? (void *)&value : (void *)&whole, option->size);
    return 0;
}

static int read_word(struct reader *reader, const struct option *option, const yaml_node_t *node,
                     uint8_t *into)
{
    static const char *const bools[] = {"false", "true", NULL};
    const char *const *words = option->type == OPTION_BOOL ? bools : option->words;
    const char *text = (const char *)node->data.scalar.value;
    char valid[192] = "";

    for (int64_t i = 0; words[i] != NULL; i++) {
        size_t used = strlen(valid);

        if (words[i][0] == '\0') /* a value that no document has */
            continue;
        if (strcmp(words[i], text) == 0) {
            memcpy(into, &i, option->size);
            return 0;
        }
        snprintf(valid + used, sizeof valid - used, "%s%s", used > 0 ? ", " : "", words[i]);
    }
    return refuse(reader, node->start_mark, "has no value '%.100s'; valid values: %s", text, valid);
}

static int read_text(struct reader *reader, const struct option *option, const yaml_node_t *node,
                     uint8_t *into)
{
    const char *text = (const char *)node->data.scalar.value;
    size_t most = option->type == OPTION_TEXT ? option->size - 1u : TEXT_MAX;
    size_t length = strlen(text);
    void *copy = into;

    if (length > most)
        return refuse(reader, node->start_mark, "has at most %zu characters, unlike '%.100s'", most,
                      text);
    if (option->type == OPTION_STRING)
        copy = point_to(reader, into, length + 1);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, text, length + 1);
    return 0;
}

static int read_value(struct reader *reader, const struct option *option, int number, uint8_t *into)
{
    static const char *const kinds[] = {"nothing", "a value", "a list", "a mapping"};
    const yaml_node_t *node = yaml_document_get_node(reader->document, number);
    yaml_node_type_t kind = option->type == OPTION_MAPPING ? YAML_MAPPING_NODE
                            : option->type == OPTION_LIST  ? YAML_SEQUENCE_NODE
                                                           : YAML_SCALAR_NODE;

    if (option->type == OPTION_POINTER) {
        uint8_t *element = point_to(reader, into, option->of->size);

        return element != NULL ? read_value(reader, option->of, number, element) : -ENOMEM;
    }
    if (++reader->visited > (size_t)(reader->document->nodes.top - reader->document->nodes.start))
        return refuse(reader, node->start_mark, "has an alias: write its value out");
    if (node->type != kind)
        return refuse(reader, node->start_mark, "is %s, not %s", kinds[kind], kinds[node->type]);
    if (option->type == OPTION_MAPPING)
        return read_mapping(reader, option->table, node, into);
    if (option->type == OPTION_LIST)
        return read_list(reader, option, node, into);
    if (option->type == OPTION_NUMBER || option->type == OPTION_REAL)
        return read_number(reader, option, node, into);
    if (option->type == OPTION_TEXT || option->type == OPTION_STRING)
        return read_text(reader, option, node, into);
    return read_word(reader, option, node, into);
}

int mapping_read(const struct mapping_text *text, const struct option *table, void *into,
                 struct mapping_memory *memory, struct err *err)
{
    struct reader reader = {.memory = memory, .first_line = text->first_line, .err = err};
    const struct option root = {.type = OPTION_MAPPING, .table = table};
    const yaml_node_t *node;
    yaml_document_t document;
    yaml_parser_t parser;
    int rc = 0;

    option_defaults(table, into);
    if (!yaml_parser_initialize(&parser))
        return err_set(err, -ENOMEM, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text->text, text->size);
    if (yaml_parser_load(&parser, &document)) {
        reader.document = &document;
        node = yaml_document_get_root_node(&document);
        if (node != NULL && (node->type != YAML_SCALAR_NODE || node->data.scalar.length > 0)) {
            rc = read_value(&reader, &root, 1, into);
            rc = rc == 0 ? 1 : rc;
        }
        yaml_document_delete(&document);
    } else {
        rc = refuse(&reader, parser.problem_mark, "is no YAML: %s",
                    parser.problem != NULL ? parser.problem : "memory is short");
    }
    yaml_parser_delete(&parser);
    return rc;
}
