#pragma once
/*
 * Writes one JSON text into a bounded buffer, compactly, with members in the order of the calls.
 * The first failure sticks: later calls do nothing, and json_write_done() reports it, so a caller
 * checks once. The output is always valid UTF-8: U+FFFD replaces each maximal invalid part of a
 * string.
 *
 *	struct json_writer w = json_writer(&buf);
 *	json_write_object(&w);
 *	json_write_key(&w, "id");
 *	json_write_str(&w, id);
 *	json_write_object_end(&w);
 *	if (json_write_done(&w, e) < 0) …
 */
#include "base/buf.h"
#include "json/document/json.h"

struct json_writer {
	struct buf *buf;
	struct err err; /* the first failure */
	unsigned depth;
	bool comma; /* the next value needs a comma before it */
	/* How json/field/field.h writes bytes; NULL: json_write_base64(). */
	void (*bytes)(struct json_writer *w, struct str bytes);
};

/* Appends to buf, which is borrowed until the last call. */
struct json_writer json_writer(struct buf *buf);
void json_writer_init(struct json_writer *w, struct buf *buf); /* the same, where it stays */

void json_write_object(struct json_writer *w);
void json_write_object_end(struct json_writer *w);
void json_write_array(struct json_writer *w);
void json_write_array_end(struct json_writer *w);

/* Writes the key of the next value. Keys are not checked for duplicates. */
void json_write_key_str(struct json_writer *w, struct str key);
static inline void json_write_key(struct json_writer *w, const char *key)
{
	json_write_key_str(w, str_of(key));
}

/* The same for a constant that needs no escapes, which is faster: json_write_name(w, "id"). */
#define json_write_name(w, name) json_write_name_str(w, STR_LIT("\"" name "\":"))
void json_write_name_str(struct json_writer *w, struct str quoted);

void json_write_null(struct json_writer *w);
void json_write_bool(struct json_writer *w, bool b);
void json_write_int(struct json_writer *w, int64_t i);
void json_write_uint(struct json_writer *w, uint64_t u);
void json_write_real(struct json_writer *w, double d); /* NaN and infinities fail with ERR_BUG */
void json_write_str(struct json_writer *w, struct str s); /* STR_NONE is "" */
void json_write_text(struct json_writer *w, const char *z); /* the same for a C string */
void json_write_base64(struct json_writer *w, struct str bytes); /* as a string, RFC 4648 §4 */

/* Writes a whole value that is JSON already, or members with their keys. The text must be valid and
 * on one line; it is copied unchecked. */
void json_write_raw(struct json_writer *w, struct str json);

/* A parsed value; NULL writes null. */
void json_write_val(struct json_writer *w, const struct json_val *v);

/* Makes the text fail with e, unless it has failed already. */
void json_write_fail(struct json_writer *w, const struct err *e);

/* 0, or -1 with the first failure. ERR_BUG: an object or array is still open. After a failure the
 * buffer ends in a broken text, which the caller must drop. */
int json_write_done(struct json_writer *w, struct err *e) MUST_USE;
