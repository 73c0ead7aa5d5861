#pragma once
/* Lines and fields of HTTP/1 heads, as requests and answers both have them. Pure functions over
 * bytes that strangers wrote. */
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { HEAD_FIELDS_MAX = 256 };

/* The end of the head; 0: not yet. *bad: a line feed stands alone, or nothing comes before the end.
 * *scanned is 0 at first, and is kept between calls with more bytes. */
size_t head_end(struct str bytes, size_t *scanned, bool *bad);

/* Cuts *s at the first c. False if there is none. */
bool head_cut(struct str *s, char c, struct str *ret);

/* The same at CR LF. */
bool head_line(struct str *s, struct str *ret);

/* The items of a comma-separated list; false at its end. */
bool head_item(struct str *list, struct str *ret);

/* z is in lower case. */
bool head_is(struct str a, const char *z);

/* The same where a server takes underscores for hyphens, as CGI does. */
bool head_is_to_cgi(struct str a, const char *z);

bool head_is_digit(char c);
bool head_is_token(struct str s); /* not empty */
char head_lower(char c);

/* Takes the field in front of *fields, without blanks around its value. NULL, or why it is none. */
const char *head_field(struct str *fields, struct str *ret_name, struct str *ret_value);

/* Content-Length. False if it is no number. */
bool head_length(struct str value, uint64_t *ret);
