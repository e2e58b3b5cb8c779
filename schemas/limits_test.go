package schemas_test

import (
)
