/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <ctype.h>

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

int main(int argc, char **argv)
{
    if (argc > 1)
        unit_argument = argv[1];
    /* The macro's function wants an array of known length. */
    return _cmocka_run_group_tests(argv[0], tests, count, NULL, NULL);
}
