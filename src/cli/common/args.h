#pragma once
/*
 * Arguments as people write them, as the JSON object that a schema wants:
 *
 *	name=text	of the type that the schema gives the name: string, integer, number, boolean, null; arrays and
 *			objects are written as JSON. A string where it may be one, or says nothing.
 *	name=@file	the same with the file's text
 *	name:=json	any JSON; the name need not be in the schema
 *	name:=@file	the same with the file's text
 *	{…}		all of them, as the only operand; "-" reads it from standard input
 *
 * They are read first (args_read.c), which may wait for a person or another program, and get their types when
 * the schema is known (args.c). What is wrong is found before anything is sent.
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
	struct json_doc *object; /* all at once, and then there are no words; else NULL */
	struct args_word words[ARGS_MAX];
	size_t n;
	size_t bytes; /* of files */
};

/* The words are borrowed while it lives. NULL with ERR_INVALID for what is none of the forms, a name that is
 * there twice or not UTF-8, and text that is not JSON; ERR_TOO_LARGE; ERR_IO and the like for files. */
struct args *args_read(const char *const *words, size_t n, struct err *e) MUST_USE;
void args_free(struct args *a); /* NULL-safe */
AUTO_DEFINE(args_free, struct args)

/* Appends the object. schema: JSON Schema of an object; NULL: all but name:=json is a string. ERR_INVALID
 * names the argument and what it takes. */
int args_build(const struct args *a, const struct json_val *schema, struct buf *to,
	       struct err *e) MUST_USE;
/* The same without the words that are no property of the schema. */
int args_build_known(const struct args *a, const struct json_val *schema, struct buf *to,
		     struct err *e) MUST_USE;

/* One value by its own schema, at root's `properties` or anywhere in it. Appends JSON. name: for messages. */
int args_value(const char *name, struct str text, const struct json_val *schema,
	       const struct json_val *root, struct buf *to, struct err *e) MUST_USE;

/* ERR_INVALID where the object is not as the schema wants it; the message names the first place, and what a
 * required argument that is not there is. A schema that can't be used refuses nothing. */
int args_check(struct str object, const struct json_val *schema, struct err *e) MUST_USE;

/* "integer or null", as the schema says it; "any" where it does not. At most `size` bytes. */
void args_type_name(const struct json_val *schema, const struct json_val *root, char *ret,
		    size_t size);
