#pragma once
#include "cli/common/verb.h"

extern const struct verb hub_stop_verb, hub_logs_verb;
