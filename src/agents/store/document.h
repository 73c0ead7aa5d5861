#pragma once
/*
 * A small JSON document in a file of its own (0600) that is replaced as a whole: written beside it,
 * brought to the disk, renamed. Whoever is killed, or loses power, leaves the old one or the new.
 */
#include "base/err.h"
#include "json/document/json.h"

enum { DOCUMENT_MAX = 1 << 20 };

/* Reads it. NULL with ERR_PATH_NOT_FOUND: there is none; ERR_DENIED: it is another user's, or no
 * regular file; ERR_STORE_CORRUPT: it is no JSON. */
struct json_doc *document_read(int folder, const char *name, struct err *e) MUST_USE;

/* Replaces it. ERR_STORE_FULL, ERR_IO: the old one stays. */
int document_write(int folder, const char *name, struct str text, struct err *e) MUST_USE;
