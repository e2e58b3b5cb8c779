package ui

// Policy is the policy of all pages.
const Policy = policy
