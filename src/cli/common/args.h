#pragma once
/*
 * Turns arguments from the command line into the JSON object that a schema describes:
 *
 *	name=text	of the type that the schema gives: string, integer, number, boolean, null;
 *			arrays and objects are written as JSON. A string if the schema allows one
 *			or gives no type.
 *	name=@file	the same with the file's text
 *	name:=json	any JSON; the name need not be in the schema
 *	name:=@file	the same with the file's text
 *	{…}		all arguments, as the only operand; "-" reads it from standard input
 *
 * args_read.c reads them first, which may wait for a person or another program. args.c gives them
 * types when the schema is known. Mistakes are found before anything is sent.
 */
#include "base/buf.h"
#include "json/document/json.h"

enum {
	ARGS_MAX = 256,
	ARGS_BYTES_MAX = 16 << 20, /* of all that is read */
	ARGS_TEXT_MAX = 32 << 20, /* of the object */
};

struct args_word {
	char *name;
	struct str text; /* borrowed of the command line or of file */
	struct buf file;
	struct json_doc *json; /* of name:=json; else NULL */
};

struct args {
	/* The whole object, if it was given at once: then there are no words. Else NULL. */
	struct json_doc *object;
	struct args_word words[ARGS_MAX];
	size_t n;
	size_t bytes; /* of files */
};

/* The words are borrowed until args_free(). NULL with ERR_INVALID for a word of no known form, a
 * name that is repeated or not UTF-8, or invalid JSON; with ERR_TOO_LARGE; or with the error of
 * reading a file. */
struct args *args_read(const char *const *words, size_t n, struct err *e) MUST_USE;
void args_free(struct args *a); /* NULL-safe */
AUTO_DEFINE(args_free, struct args)

/* Appends the object. schema: JSON Schema of an object; if NULL, every value but name:=json is a
 * string. ERR_INVALID names the argument and what it takes. */
int args_build(const struct args *a, const struct json_val *schema, struct buf *to,
	       struct err *e) MUST_USE;
/* The same, without words that are not properties of the schema. */
int args_build_known(const struct args *a, const struct json_val *schema, struct buf *to,
		     struct err *e) MUST_USE;

/* Appends one value as JSON, by its schema, which is anywhere in root. name: for messages. */
int args_value(const char *name, struct str text, const struct json_val *schema,
	       const struct json_val *root, struct buf *to, struct err *e) MUST_USE;

/* ERR_INVALID if the object does not match the schema. The message names the first mismatch, and
 * the type of a missing required argument. A schema that can't be used accepts everything. */
int args_check(struct str object, const struct json_val *schema, struct err *e) MUST_USE;

/* The type in words, such as "integer or null"; "any" if the schema gives none. At most `size`
 * bytes. */
void args_type_name(const struct json_val *schema, const struct json_val *root, char *ret,
		    size_t size);

/* Whether the schema of an object requires this member. */
bool args_required(const struct json_val *schema, struct str name);
