// Package uitest drives the console of a real gateway with a real Chromium. A page under test must write no error to its
// console and ask no other origin for anything; [Page.Axe] looks for what people with disabilities stumble over.
package uitest
