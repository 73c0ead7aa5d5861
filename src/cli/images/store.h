#pragma once
/* What the words of `holt images` share. */
#include "cli/common/verb.h"
#include "hub/image/images.h"

/* The store of the data folder. */
struct images *image_cli_open(struct err *e) MUST_USE;

/* box_template_find (box/host/box.h) in the user's store, which is not created. */
int image_cli_find(void *unused, struct str name, box_template_use use, void *to,
		   struct err *e) MUST_USE;

/* An image of that store, which is not created. *ret must be zeros before. */
int image_cli_look(struct str name, struct image *ret, struct err *e) MUST_USE;

/* worker.clean (cli/common/worker.h): removes the remains of an import or build. */
void image_cli_tidy(void *unused);

/* Writes an image, with its names, as an object. */
int image_cli_json(const struct image *i, const struct image_names *names, struct json_writer *w,
		   struct err *e) MUST_USE;
/* Prints what was written to the buffer, and a line break. */
int image_cli_print(struct json_writer *w, struct err *e) MUST_USE;

/* "1.5 GB": bytes for people, at `ret`. */
void image_cli_size(uint64_t bytes, char ret[16]);
/* Prints the image: as JSON, or a line with the name that it has got, or without that all lines. */
int image_cli_tell(struct images *s, const struct image *i, const char *name, bool json,
		   struct err *e) MUST_USE;
