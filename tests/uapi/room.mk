# SPDX-License-Identifier: MIT
# The test that holds headers, specification and module together.
UNIT_TESTS += tests/uapi/uapi.t
