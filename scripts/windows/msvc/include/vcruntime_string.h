// The compiler runtime's part of <string.h>.
#pragma once
#include <string.h>
