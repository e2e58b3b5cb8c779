package texts

import "strings"

// SameName reports whether some file system equates name with known: it may ignore case (APFS, NTFS), invisible characters
// (HFS+), or dots and blanks at the end and all after a colon (NTFS). See is_hfs_dotgit and is_ntfs_dotgit in git.
func SameName(name, known string) bool {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":")
	return strings.EqualFold(strings.TrimRight(name, " ."), known)
}
