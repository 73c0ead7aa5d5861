#pragma once
/*
 * Where the program of an agent's preset is (config/agent_preset.h): fetched by `holt agent add`,
 * else installed on this host. Blocks: it looks at a few small files.
 *
 * What was fetched is an image (modules/package.h), one for each package, that has the name
 * AGENT_IMAGES, then the package and its program: "holt-agents/google/gemini-cli:gemini". It
 * changes only by `holt agent update`.
 *
 * What is installed is given to the sandbox at its own path: a program of npm with its packages,
 * and the Node.js beside it unless that is of /usr; of others the file alone.
 */
#include "config/agent_preset.h"
#include "modules/package.h"

#define AGENT_IMAGES "holt-agents/"
#define AGENT_IMAGES_NEW "holt-agents-new/" /* fetched by update, and not accepted yet */

struct agent_program {
	struct str template; /* "host", or the image */
	struct field_strs argv; /* absolute, with its interpreter before it */
	struct field_strs read; /* files and folders of the host, at the same path inside */
	struct str path; /* as people know it: where it was found; STR_NONE: fetched */
	struct str package, version; /* of a fetched one */
	char digest[HASH_HEX + 1]; /* of its image; "": installed */
};

/* argv: p->run, p->acp or p->login. images: the path of the store; NULL: none. What is found is in
 * a. 1; 0: there is none; -1 with *e. */
int agent_program_find(const struct agent_preset *p, const struct field_strs *argv,
		       const char *images, struct arena *a, struct agent_program *ret,
		       struct err *e) MUST_USE;

/* The package that has the program of argv; STR_NONE: none is known. */
struct str agent_program_package(const struct agent_preset *p, const struct field_strs *argv);

/* The name of the image of a package's program. prefix: AGENT_IMAGES or AGENT_IMAGES_NEW. */
int agent_image_name(const char *prefix, struct str package, struct str program,
		     char ret[IMAGE_NAME_MAX + 1], struct err *e) MUST_USE;

/* The record of an image that was fetched for a package's program, with its install scripts or
 * without. ERR_DATA_MISSING: it was fetched for another version, or its files are gone. */
struct package *agent_package_open(const char *images, struct str image, struct str package,
				   struct str program, struct err *e) MUST_USE;

/* The entry as which a package is fetched: `npx -y -p PACKAGE PROGRAM`; words is its room. name:
 * at most 32 of a-z 0-9 -. */
void agent_package_entry(struct str name, struct str package, struct str program, bool scripts,
			 struct str words[4], struct config_server *ret);
