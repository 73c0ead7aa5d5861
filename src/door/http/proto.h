#pragma once
/*
 * Messages of protocol buffers (proto3's wire), which some clients of Connect speak instead of
 * JSON. Bytes in, bytes out. A message that comes becomes JSON of the same message, for the
 * decoder that checks all else; one that goes is written from a struct. Both by a field table,
 * whose rows are in the order of the fields' numbers, which begin at 1: a new row is the last one.
 * FIELD_BYTES tells bytes from a text. Where all rows have .has, only the last field that stands
 * counts (a oneof). The tables nest as deep as their author wrote them, so a message does, too.
 *
 * Debian's libraries were tried. protobuf-c 1.4.1 has 31 KB of code, where this has 7, and needs
 * protoc at build time. For a request of 1 MiB with unknown fields it allocates 60 MiB. It ends a
 * text at its first NUL, so the checked text would not be the one that was sent, and accepts texts
 * that are not UTF-8. nanopb needs a generator in Python and a callback for each text and list.
 */
#include "json/field/field.h"

/* At most so many bytes of JSON come of a message of n: each may have to be escaped. */
#define PROTO_JSON_MAX(n) (6 * (n) + 4096)

/* As the format wants, fields without a row or of another form are read over, and of a field that
 * stands several times and is not repeated, the last counts; messages are merged. What is no
 * message is ERR_INVALID. */
int proto_to_json(const struct field_table *t, struct str bytes, struct buf *to,
		  struct err *e) MUST_USE;

/* What is 0 or empty is left out, as the format wants. */
int proto_encode(const struct field_table *t, const void *from, struct buf *to,
		 struct err *e) MUST_USE;
