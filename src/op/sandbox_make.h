#pragma once
/* New sandboxes: sandbox.create, sandbox.fork and snapshot.restore. */
#include "op/network.h"
#include "op/sandbox_view.h"

enum { COPIES_MAX = 64 };
