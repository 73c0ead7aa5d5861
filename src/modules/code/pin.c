#include "modules/code/pin.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "modules/code/pin_internal.h"

/* A canonical text is at most as long as its document, except for numbers: [1e308] and escapes. */
enum { TEXT_MAX = 4 * JSON_BYTES_MAX };

const struct str pin_members[PIN_MEMBERS] = {
	STR_LIT("name"),	STR_LIT("title"),	 STR_LIT("description"),
	STR_LIT("inputSchema"), STR_LIT("outputSchema"), STR_LIT("annotations"),
	STR_LIT("icons"),
};

static int member_compare(const void *a, const void *b)
{
	return str_cmp(((const struct pin_member *)a)->key, ((const struct pin_member *)b)->key);
}

struct pin_member *pin_sorted(const struct json_val *v, struct err *e)
{
	struct json_iter it = json_iter(v);
	size_t n = json_len(v);
	struct pin_member *m;

	*e = ERR_INIT;
	if (n == 0)
		return NULL;
	m = calloc(n, sizeof(*m));
	if (!m)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	while (json_next(&it))
		m[it.index] = (struct pin_member){ it.key, it.val };
	qsort(m, n, sizeof(*m), member_compare);
	return m;
}

static void write_object(struct json_writer *w, const struct json_val *v)
{
	struct err e;
	autofree struct pin_member *m = pin_sorted(v, &e);

	if (e.code)
		json_write_fail(w, &e);
	json_write_object(w);
	for (size_t i = 0; m && i < json_len(v); i++) {
		json_write_key_str(w, m[i].key);
		pin_write(w, m[i].key, m[i].val);
	}
	json_write_object_end(w);
}

/* An integer that came as 1.0 or 1e0 is one. */
static void write_real(struct json_writer *w, const struct json_val *v)
{
	double d = json_real(v);

	if (d == trunc(d) && d >= -0x1p63 && d < 0x1p63)
		json_write_int(w, (int64_t)d);
	else if (d == trunc(d) && d >= 0 && d < 0x1p64)
		json_write_uint(w, (uint64_t)d);
	else
		json_write_real(w, d);
}

static int string_compare(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static bool is_set(struct str key, const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	if (!str_is(key, "required") && !str_is(key, "enum") && !str_is(key, "type"))
		return false;
	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			return false;
	}
	return json_len(v) > 1;
}

static void write_set(struct json_writer *w, const struct json_val *v)
{
	struct json_iter it = json_iter(v);
	size_t n = json_len(v);
	autofree struct str *all = calloc(n, sizeof(*all));

	if (!all) {
		json_write_fail(w, &(struct err){ ERR_LIMIT, "out of memory" });
		return;
	}
	while (json_next(&it))
		all[it.index] = json_str(it.val);
	qsort(all, n, sizeof(*all), string_compare);
	for (size_t i = 0; i < n; i++)
		json_write_str(w, all[i]);
}

void pin_write(struct json_writer *w, struct str key, const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	switch (json_type(v)) {
	case JSON_OBJECT:
		write_object(w, v);
		return;
	case JSON_ARRAY:
		json_write_array(w);
		if (is_set(key, v))
			write_set(w, v);
		else
			while (json_next(&it))
				pin_write(w, STR_NONE, it.val);
		json_write_array_end(w);
		return;
	case JSON_REAL:
		write_real(w, v);
		return;
	default:
		json_write_val(w, v);
	}
}

int pin_canonical(struct buf *to, const struct json_val *tool, struct err *e)
{
	const struct json_val *vals[PIN_MEMBERS];
	struct json_writer w = json_writer(to);

	if (json_type(json_get(tool, "name")) != JSON_STR)
		return err_set(e, ERR_INVALID, "a tool is an object with a name");
	json_get_all(tool, pin_members, PIN_MEMBERS, vals);
	json_write_object(&w);
	for (size_t i = 0; i < PIN_MEMBERS; i++) {
		if (!vals[i])
			continue;
		json_write_key_str(&w, pin_members[i]);
		pin_write(&w, pin_members[i], vals[i]);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

int pin_tool(const struct json_val *tool, char ret[SHA256_HEX], struct err *e)
{
	autobuf struct buf b = BUF_INIT(TEXT_MAX);

	if (pin_canonical(&b, tool, e) < 0)
		return -1;
	sha256_hex(buf_str(&b), ret);
	return 0;
}

int pin_instructions(struct str text, char ret[SHA256_HEX], struct err *e)
{
	autobuf struct buf b = BUF_INIT(TEXT_MAX);
	struct json_writer w = json_writer(&b);

	/* An array, so that it is never the text of a tool. */
	json_write_array(&w);
	if (text.p)
		json_write_str(&w, text);
	json_write_array_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	sha256_hex(buf_str(&b), ret);
	return 0;
}
