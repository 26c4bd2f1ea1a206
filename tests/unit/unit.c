/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <ctype.h>
#include <fcntl.h>

#define TESTS_MAX 32

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;
const char *unit_argument = "";

void unit_add(const char *name, CMUnitTestFunction test, CMFixtureFunction before,
              CMFixtureFunction after)
{
    if (count == TESTS_MAX)
        abort();
    tests[count++] = (struct CMUnitTest){name, test, before, after, NULL};
}

const char *unit_json(char *json, const char *text)
{
    char *to = json, *end;

    while (*text != '\0') {
        bool quoted = *text == '\'' || *text == '"', bare;
        size_t length = 0;

        while (text[length] != '\0' && strchr("{}[],'\" \n", text[length]) == NULL &&
               (text[length] != ':' || text[length + 1] != ' '))
            length++;
        if (quoted)
            length = strcspn(++text, "'\"");
        (void)strtod(text, &end);
        bare = (end == text + length && (isdigit(*text) || *text == '-')) ||
               strncmp(text, "true", length) == 0 || strncmp(text, "false", length) == 0;
        to += sprintf(to, quoted || (length > 0 && !bare) ? "\"%.*s\"" : "%.*s", (int)length, text);
        text += length + quoted;
        if (length == 0 && !quoted)
            *to++ = *text++;
    }
    *to = '\0';
    return json;
}

/* Return the field at *text, zero-terminated; move *text behind it. */
static char *next_field(char **text)
{
    char *field = *text, *end = strstr(field, " | ");

    *text = end != NULL ? end + 3 : field + strlen(field);
    if (end != NULL)
        *end = '\0';
    return field;
}

void unit_each_row(const char *kind, void (*check)(const struct unit_row *row))
{
    FILE *file = fopen(unit_argument, "re");
    struct unit_row row = {0};
    char *line = NULL, *rest;
    size_t room = 0;
    int found = 0;

    assert_non_null(file);
    while (getline(&line, &room, file) > 0) {
        row.line++;
        line[strcspn(line, "\n")] = '\0';
        rest = line;
        if (strcmp(next_field(&rest), kind) != 0)
            continue;
        for (unsigned i = 0; i < UNIT_FIELDS; i++)
            row.fields[i] = next_field(&rest);
        check(&row);
        found++;
    }
    free(line);
    fclose(file);
    assert_true(found > 0);
}

static char folder[32];

const char *unit_folder(const char *commands)
{
    int before = open(".", O_PATH | O_CLOEXEC);

    strcpy(folder, "/tmp/sb-unit.XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(system(commands), 0);
    assert_int_equal(fchdir(before), 0);
    close(before);
    return folder;
}

void unit_folder_remove(void)
{
    char command[64];

    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

void unit_same(const char *text)
{
    FILE *file = fopen(unit_argument, "re");
    const char *at = text;
    char *line = NULL;
    size_t room = 0;

    assert_non_null(file);
    for (ssize_t size; (size = getline(&line, &room, file)) > 0;) {
        if (line[0] == '#')
            continue;
        if (strncmp(at, line, (size_t)size) != 0) {
            fputs(text, stderr);
            fail_msg("this differs from %s: %s", unit_argument, line);
        }
        at += size;
    }
    assert_string_equal(at, "");
    free(line);
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        unit_argument = argv[1];
    /* The macro's function needs an array of known length. */
    return _cmocka_run_group_tests(argv[0], tests, count, NULL, NULL);
}
