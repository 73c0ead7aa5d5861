#pragma once
/*
 * `docker run OPTION... IMAGE ARGUMENT...`, and podman's, as the command of a server. The hub runs
 * no such command: a sandbox of the image stands for the container (modules/package.h), and each
 * option has a row that says what it means there. No I/O.
 */
#include "config/config.h"

enum config_docker_means {
	CONFIG_DOCKER_NOTHING, /* true of every sandbox, or of no matter */
	CONFIG_DOCKER_PULL,
	CONFIG_DOCKER_ENV, /* "NAME=VALUE", or "NAME" of the entry's env */
	CONFIG_DOCKER_VOLUME, /* "HOST:INSIDE[:OPTION,...]" */
	CONFIG_DOCKER_MOUNT, /* "type=bind,source=HOST,target=INSIDE[,readonly]" */
	CONFIG_DOCKER_FOLDER,
	CONFIG_DOCKER_PROGRAM,
	CONFIG_DOCKER_TOLD, /* it has no effect, and says what helps */
	CONFIG_DOCKER_REFUSED,
};

struct config_docker_option {
	char letter; /* 0: none */
	const char *name; /* without the dashes */
	bool has_value;
	enum config_docker_means means;
	const char *says; /* of those that are told or refused */
};

/* Argument `arg` has the option, and its value from byte `at` on; without a value, at is 0. */
typedef int (*config_docker_fn)(void *data, const struct config_docker_option *o, size_t arg,
				size_t at, struct err *e);

/* Whether the server runs an image so, in a sandbox. */
bool config_docker_is(const struct config_server *s);
/* Calls each with the options in their order. *ret_image: the argument that names the image.
 * ERR_INVALID: an option that is not known or refused, no image; and what each says. */
int config_docker_options(const struct config_server *s, config_docker_fn each, void *data,
			  size_t *ret_image, struct err *e) MUST_USE;

/* What -v and --mount give. On the arena. ERR_INVALID: it is no folder or file of the host. */
int config_docker_mount(enum config_docker_means means, struct str text, struct arena *a,
			struct config_mount *ret, struct err *e) MUST_USE;
