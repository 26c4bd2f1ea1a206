/* SPDX-License-Identifier: BSD-3-Clause */
#include "mapping_reader.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct mapping_memory *memory;
    unsigned line;
    char path[PATH_MAX_BYTES];
    struct err *err;
};

static int refuse(const struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int refuse(const struct reader *reader, const char *format, ...)
{
    char what[320];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return err_set(reader->err, -EINVAL, "documents, line %u: %s %s", reader->line,
                   reader->path[0] != '\0' ? reader->path : "a document", what);
}

/* Allocate zeroed memory, and store a pointer to it at `into`. */
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

static int read_value(struct reader *reader, const struct option *option, json_t *value,
                      uint8_t *into);

static int read_mapping(struct reader *reader, const struct option *table, json_t *mapping,
                        uint8_t *into)
{
    size_t at = strlen(reader->path);
    const char *key;
    json_t *value;

    option_defaults(table, into);
    json_object_foreach(mapping, key, value)
    {
        const struct option *option = table;
        int rc;

        while (option->key != NULL && strcmp(option->key, key) != 0)
            option++;
        if (option->key == NULL)
            return refuse(reader, "has the unknown key '%.100s'", key);
        snprintf(reader->path + at, sizeof reader->path - at, "%s%s", at > 0 ? "." : "", key);
        rc = read_value(reader, option, value, into + option->offset);
        if (rc < 0)
            return rc;
        reader->path[at] = '\0';
        if (option->given > 0)
            *(bool *)(into + option->given) = true;
    }
    for (; table->key != NULL; table++)
        if (table->needed && json_object_get(mapping, table->key) == NULL)
            return refuse(reader, "lacks the key '%s'", table->key);
    return 0;
}

static int read_list(struct reader *reader, const struct option *option, const json_t *list,
                     uint8_t *into)
{
    int64_t count = (int64_t)json_array_size(list);
    uint8_t *element;
    int rc = 0;

    if (count < option->min || count > option->max)
        return refuse(reader, "must have %lld to %lld entries, not %lld", (long long)option->min,
                      (long long)option->max, (long long)count);
    element = option->size > sizeof(void *)
                  ? into
                  : point_to(reader, into, (size_t)count * option->of->size);
    if (element == NULL)
        return -ENOMEM;
    memcpy(into - option->offset + option->count, &count, option->count_size);
    for (int64_t i = 0; i < count && rc == 0; i++, element += option->of->size)
        rc = read_value(reader, option->of, json_array_get(list, (size_t)i), element);
    return rc;
}

static int read_number(struct reader *reader, const struct option *option, const json_t *number,
                       uint8_t *into)
{
    bool real = option->type == OPTION_REAL;
    double value = json_number_value(number);
    int64_t whole = json_integer_value(number);

    if (real && option->max == 0 && value < (double)option->min)
        return refuse(reader, "must be at least %lld, not %g", (long long)option->min, value);
    if (real ? option->max > 0 && (value < (double)option->min || value > (double)option->max)
             : whole < option->min || whole > option->max)
        return refuse(reader, "must be %lld to %lld, not %.17g%s%s", (long long)option->min,
                      (long long)option->max, value, option->why != NULL ? ": " : "",
                      option->why != NULL ? option->why : "");
    memcpy(into, real ? (void *)&value : (void *)&whole, option->size);
    return 0;
}

static int read_word(struct reader *reader, const struct option *option, const char *text,
                     uint8_t *into)
{
    char valid[192] = "";

    for (int64_t i = 0; option->words[i] != NULL; i++) {
        size_t used = strlen(valid);

        if (option->words[i][0] == '\0') /* placeholder for a value that no document has */
            continue;
        if (strcmp(option->words[i], text) == 0) {
            memcpy(into, &i, option->size);
            return 0;
        }
        snprintf(valid + used, sizeof valid - used, "%s%s", used > 0 ? ", " : "", option->words[i]);
    }
    return refuse(reader, "has the invalid value '%.100s'; valid values: %s", text, valid);
}

static int read_text(struct reader *reader, const struct option *option, const char *text,
                     uint8_t *into)
{
    size_t most = option->type == OPTION_TEXT ? option->size - 1u : TEXT_MAX;
    size_t length = strlen(text);
    void *copy = into;

    if (length > most)
        return refuse(reader, "must have at most %zu characters, unlike '%.100s'", most, text);
    if (option->type == OPTION_STRING)
        copy = point_to(reader, into, length + 1);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, text, length + 1);
    return 0;
}

static int read_value(struct reader *reader, const struct option *option, json_t *value,
                      uint8_t *into)
{
    static const struct {
        const char *name;
        unsigned types; /* bits of enum json_type */
    } kinds[] = {
        [OPTION_NUMBER] = {"a whole number", 1u << JSON_INTEGER},
        [OPTION_REAL] = {"a number", 1u << JSON_INTEGER | 1u << JSON_REAL},
        [OPTION_BOOL] = {"true or false", 1u << JSON_TRUE | 1u << JSON_FALSE},
        [OPTION_WORD] = {"a text", 1u << JSON_STRING},
        [OPTION_TEXT] = {"a text", 1u << JSON_STRING},
        [OPTION_STRING] = {"a text", 1u << JSON_STRING},
        [OPTION_MAPPING] = {"a mapping", 1u << JSON_OBJECT},
        [OPTION_LIST] = {"a list", 1u << JSON_ARRAY},
    };
    int64_t truth = json_is_true(value);
    uint8_t *element;
    char *text;
    int rc;

    if (option->type == OPTION_POINTER) {
        element = point_to(reader, into, option->of->size);
        return element != NULL ? read_value(reader, option->of, value, element) : -ENOMEM;
    }
    if ((kinds[option->type].types >> json_typeof(value) & 1) == 0) {
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        rc = refuse(reader, "must be %s, not %.100s", kinds[option->type].name,
                    text ? text : "this");
        free(text);
        return rc;
    }
    switch (option->type) {
    case OPTION_MAPPING:
        return read_mapping(reader, option->table, value, into);
    case OPTION_LIST:
        return read_list(reader, option, value, into);
    case OPTION_BOOL:
        memcpy(into, &truth, option->size);
        return 0;
    case OPTION_WORD:
        return read_word(reader, option, json_string_value(value), into);
    case OPTION_TEXT:
    case OPTION_STRING:
        return read_text(reader, option, json_string_value(value), into);
    default:
        return read_number(reader, option, value, into);
    }
}

int mapping_read(const struct mapping_text *text, const struct option *table, void *into,
                 struct mapping_memory *memory, struct err *err)
{
    struct reader reader = {.memory = memory, .line = text->line, .err = err};
    const struct option root = {.type = OPTION_MAPPING, .table = table};
    json_error_t error;
    json_t *value =
        json_loadb(text->text, text->size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    int rc;

    if (value == NULL)
        return refuse(&reader, "is not valid JSON: column %d: %s", error.column, error.text);
    rc = read_value(&reader, &root, value, into);
    json_decref(value);
    return rc;
}
