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
 * Nothing is asked of anybody: what is wrong is found before anything is sent.
 */
#include "base/buf.h"
#include "json/json.h"

enum {
	ARGS_BYTES_MAX = 16 << 20, /* of all that is read */
	ARGS_TEXT_MAX = 32 << 20, /* of the object */
};

/* Appends the object. schema: JSON Schema of an object; NULL: everything is a string. ERR_INVALID names the
 * argument and what it takes; ERR_IO and the like for files. */
int args_build(char *const *operands, int n, const struct json_val *schema, struct buf *to,
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
