#pragma once
/* Whole members of an object: json_put_text(&w, "name", name) writes the key and the value. The
 * object or array of the last two stays open. */
#include "json/document/write.h"

#define JSON_PUT(kind, type)                                                                       \
	static inline void json_put_##kind(struct json_writer *w, const char *key, type v)         \
	{                                                                                          \
		json_write_key(w, key);                                                            \
		json_write_##kind(w, v);                                                           \
	}
JSON_PUT(bool, bool)
JSON_PUT(int, int64_t)
JSON_PUT(uint, uint64_t)
JSON_PUT(str, struct str)
JSON_PUT(text, const char *)
JSON_PUT(base64, struct str)
JSON_PUT(raw, struct str)
JSON_PUT(val, const struct json_val *)
#undef JSON_PUT

static inline void json_put_object(struct json_writer *w, const char *key)
{
	json_write_key(w, key);
	json_write_object(w);
}

static inline void json_put_array(struct json_writer *w, const char *key)
{
	json_write_key(w, key);
	json_write_array(w);
}
