#pragma once
/*
 * Packages of modules: what `npx -y PKG` and the like (config/package.h) run.
 *
 *	the entry -> fetch: `holt build` of a folder that this writes -> an image -> approved -> run
 *
 * A fetch is a build on the entry's template: its step installs the package with what it depends on
 * in /opt/package, in a sandbox that reaches the registry alone and runs no install script that the
 * operator's file does not allow. What comes out is an image like any other: one tree that is never
 * changed, known by its digest, which is what the operator approves. Modules run in sandboxes of
 * it, offline. Nothing is resolved or fetched when one starts.
 *
 * The registry's row of a module keeps its images (store/store.h), with a digest of what they were
 * fetched for. Such an image says itself what it is, in a file that the step wrote before anything
 * of the package ran: struct package_record.
 *
 * `docker run IMAGE` is an image already: that of the store that has its name, or else what `holt
 * images pull` gets. Its record is what the store says of it.
 */
#include <uv.h>

#include "base/hash.h"
#include "config/package.h"
#include "hub/image/images.h"

/* Texts are the publisher's: untrusted. */
struct package_record {
	struct str wanted; /* package_wanted() */
	struct str kind, name, version; /* kind: config_package_kind_names */
	struct str license, author, repository; /* may be absent */
	struct field_strs maintainers; /* as the registry says */
	uint64_t bytes, files;
	struct field_strs dependencies; /* "NAME@VERSION" */
	struct field_strs scripts; /* install scripts: "NAME@VERSION: postinstall" */
	struct str lock; /* digest of all names, versions and digests of what was fetched */
	struct field_strs program; /* absolute, with its interpreter before it */
	struct field_strs arguments; /* of an image: where the entry has none */
};

struct package {
	unsigned refs;
	char image[HASH_HEX + 1];
	struct image_doc doc;
	struct image of; /* whose record it is, of docker run */
	struct package_record record;
};

/* Reads the record of an image of the store, for the server that runs it; the digest's owner has to
 * know that it was fetched for that (package_wanted()). It opens a small file or two.
 * ERR_DATA_MISSING. */
struct package *package_open(const char *store, struct str image, const struct config_server *s,
			     struct err *e) MUST_USE;
struct package *package_ref(struct package *p); /* NULL-safe */
void package_unref(struct package *p); /* NULL-safe */

/* What decides which package an entry runs: kind, name, version, program, template, scripts.
 * 1; 0: it runs none; -1 with *e. */
int package_wanted(const struct config_server *s, struct buf *to, struct err *e) MUST_USE;

/* ---- package_fetch.c ------------------------------------------------------------------------- */

struct package_fetch;
struct package_fetch_spec {
	uv_loop_t *loop;
	const char *images; /* the path of the store; borrowed until on_done */
	const char *image; /* the name that it gets; NULL: one of PACKAGE_IMAGES */
	const struct config *config; /* of server; borrowed for the call, as is server */
	const struct config_server *server;
	const char *const *options; /* of `holt build`, ending with NULL; borrowed until on_done */
	/* Once, later: the image, or why there is none. Also after package_fetch_cancel(). */
	void (*on_done)(void *owner, const char *image, const struct err *e);
	void *owner;
};
struct package_fetch *package_fetch_start(const struct package_fetch_spec *spec,
					  struct err *e) MUST_USE;
void package_fetch_cancel(struct package_fetch *f);

/* Names of images that fetches make begin so. */
#define PACKAGE_IMAGES "holt-modules/"
