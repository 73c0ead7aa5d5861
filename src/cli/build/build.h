#pragma once
/* Builds an image from a folder: `holt build`, and `holt up` with a folder. */
#include "cli/common/verb.h"
#include "cli/grants/grants.h"
#include "hub/image/build_doc.h"
#include "hub/image/images.h"

struct build_how {
	const char *name; /* NAME[:TAG]; NULL: that of the folder */
	const char *allow; /* box_config.allow, for the sandbox of the steps */
	bool no_cache;
	bool no_keep; /* results of lines are of no use to later builds */
	const struct cli *cli; /* whose hooks its calls pass */
	const char *config; /* --config; NULL: not said */
	const struct network_options *network; /* of the lines of run; NULL: nothing is granted */
};

struct built {
	char name[IMAGE_NAME_MAX + 1], digest[HASH_HEX + 1];
	bool cached; /* the same was built before */
};

#define BUILD_ALLOW_ROW(S)                                                                         \
	OPTION(S, allow, OPTION_TEXT, "allow-missing", .arg = "LIST", .env = "HOLT_ALLOW_MISSING", \
	       .doc = "Isolation features that the sandbox of a build may lack, by the names "     \
		      "that holt doctor prints.")

/* Reports progress on standard error. A signal that ends this program leaves nothing of the
 * build behind. Errors: those of images_build() (hub/image/images.h), ERR_BUILD, ERR_PROGRAM,
 * and ERR_INVALID if the folder has no file that describes a build. */
int build_folder(const char *path, const struct build_how *how, struct built *ret,
		 struct err *e) MUST_USE;

/* The image_build.run of a build on this host. */
struct build_place {
	const char *allow; /* box_config.allow */
	struct grants grants;
};
int build_steps(void *place, const struct image_steps *steps, struct err *e) MUST_USE;

/* Builds with buildah from the file `name` in the folder. dir: the open folder. */
int build_container(struct images *s, int dir, const char *file, const char *name,
		    struct image *ret, struct err *e) MUST_USE;
