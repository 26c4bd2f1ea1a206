/* SPDX-License-Identifier: BSD-3-Clause */
#include "schema_error.h"

#include <stdio.h>
#include <string.h>

static void note(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct refusal *refusal = context;
    char text[256];
    char *place;

    if (level < CYAML_LOG_ERROR)
        return;
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    place = strstr(text, "(line: ");
    if (place != NULL && refusal->line == 0)
        (void)sscanf(place, "(line: %u, column: %u)", &refusal->line, &refusal->column);
    else if (refusal->message[0] == '\0')
        snprintf(refusal->message, sizeof refusal->message, "%s",
                 strncmp(text, "Load: ", 6) == 0 ? text + 6 : text);
}

cyaml_config_t refusal_config(struct refusal *refusal)
{
    return (cyaml_config_t){
        .log_level = CYAML_LOG_WARNING,
        .log_fn = note,
        .log_ctx = refusal,
        .mem_fn = cyaml_mem,
    };
}

const char *refusal_message(const struct refusal *refusal, cyaml_err_t code)
{
    return refusal->message[0] != '\0' ? refusal->message : cyaml_strerror(code);
}
