/* SPDX-License-Identifier: BSD-3-Clause */
#include "pattern_cases.h"

#include "documents.h"
#include "registry.h"

#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pattern_cases_path;

/* The field at *text, ended; *text is behind it. */
static char *next_field(char **text)
{
    char *field = *text, *end = strstr(field, " | ");

    *text = end != NULL ? end + 3 : field + strlen(field);
    if (end != NULL)
        *end = '\0';
    return field;
}

static void check_line(char *rest, int line, void (*check)(const struct pattern_case *one))
{
    const char *ranks = next_field(&rest), *pattern = next_field(&rest);
    struct pattern_case one = {.line = line};
    struct document *document = NULL;
    struct mapping_text text;
    struct err err = {0};
    char plan[1024];

    text = (struct mapping_text){
        plan,
        (size_t)snprintf(plan, sizeof(plan), "plan: {ranks: %s, pattern: %s}\n", ranks, pattern),
        1};
    if (document_parse(&document, &text, transports, &err) < 0)
        fail_msg("%s:%d: %s", pattern_cases_path, line, err.text);
    one.request = document->plan->pattern;
    for (unsigned i = 0; i < CASE_FIELDS; i++)
        one.fields[i] = next_field(&rest);
    check(&one);
    document_free(document);
}

void pattern_cases(const char *kind, void (*check)(const struct pattern_case *one))
{
    FILE *file = fopen(pattern_cases_path, "re");
    char *line = NULL, *rest;
    size_t room = 0;
    int number = 0, found = 0;

    assert_non_null(file);
    while (getline(&line, &room, file) > 0) {
        number++;
        line[strcspn(line, "\n")] = '\0';
        rest = line;
        if (strcmp(next_field(&rest), kind) != 0)
            continue;
        check_line(rest, number, check);
        found++;
    }
    free(line);
    fclose(file);
    assert_true(found > 0);
}
