package ui

import "html/template"

// icons are the insides of pictures of 16 by 16, drawn with lines.
func icons() map[string]string {
	return map[string]string{
		"start":      `<path d="M2.5 7.5 8 3l5.5 4.5V13h-3.7V9.5H6.2V13H2.5z"/>`,
		"servers":    `<rect x="2.5" y="2.5" width="11" height="4.5" rx="1"/><rect x="2.5" y="9" width="11" height="4.5" rx="1"/><path d="M5 4.7h.01M5 11.2h.01"/>`,
		"tools":      `<path d="M9.8 6.2 13 3a3.4 3.4 0 0 1-4.6 4.4L4.6 11.2a1.3 1.3 0 0 0 1.8 1.8l3.8-3.8"/><path d="M3 3l3 3"/>`,
		"playground": `<path d="M5 3.2v9.6L13 8z"/>`,
		"runs":       `<circle cx="8" cy="8" r="5.5"/><path d="M8 5v3l2 1.5"/>`,
		"pipelines":  `<circle cx="3.5" cy="8" r="1.5"/><circle cx="12.5" cy="4" r="1.5"/><circle cx="12.5" cy="12" r="1.5"/><path d="M5 8h2.5M11 4H9.5a2 2 0 0 0-2 2v4a2 2 0 0 0 2 2H11"/>`,
		"resources":  `<path d="M4 2.5h5L12 5.5v8H4z"/><path d="M9 2.5v3h3"/>`,
		"prompts":    `<path d="M2.5 3.5h11v7H7l-3 2.5v-2.5H2.5z"/>`,
		"logins":     `<circle cx="5.5" cy="10" r="3"/><path d="M7.7 7.8 13 2.5M11 4.5l1.5 1.5"/>`,
		"protocol":   `<path d="M3 5.5h9l-2-2M13 10.5H4l2 2"/>`,
		"system":     `<rect x="4" y="4" width="8" height="8" rx="1"/><path d="M6.5 1.5V4M9.5 1.5V4M6.5 12v2.5M9.5 12v2.5M1.5 6.5H4M1.5 9.5H4M12 6.5h2.5M12 9.5h2.5"/>`,
		"search":     `<circle cx="7" cy="7" r="4"/><path d="m10 10 3.5 3.5"/>`,
		"theme":      `<circle cx="8" cy="8" r="5.5"/><path d="M8 2.5v11a5.5 5.5 0 0 0 0-11z" fill="currentColor"/>`,
		"menu":       `<path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"/>`,
		"close":      `<path d="m4 4 8 8M12 4l-8 8"/>`,
		"copy":       `<rect x="5.5" y="5.5" width="8" height="8" rx="1"/><path d="M10.5 5.5v-3h-8v8h3"/>`,
		"more":       `<path d="M4 8h.01M8 8h.01M12 8h.01"/>`,
		"refresh":    `<path d="M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5"/>`,
		"stop":       `<rect x="4" y="4" width="8" height="8" rx="1"/>`,
		"plus":       `<path d="M8 3v10M3 8h10"/>`,
		"download":   `<path d="M8 2.5v7.5M5 7l3 3 3-3M3 13.5h10"/>`,
		"warning":    `<path d="M8 2.5 14 13H2z"/><path d="M8 6.5v3M8 11.3h.01"/>`,
		"check":      `<path d="m3 8.5 3.5 3.5L13 4.5"/>`,
		"logout":     `<path d="M6.5 2.5h-4v11h4M6 8h7.5M11 5.5 13.5 8 11 10.5"/>`,
		"external":   `<path d="M6 3.5H3v9.5h9.5V10M9 2.5h4.5V7M13 3 7.5 8.5"/>`,
		"keyboard":   `<rect x="1.5" y="4" width="13" height="8.5" rx="1"/><path d="M4 6.7h.01M6.7 6.7h.01M9.3 6.7h.01M12 6.7h.01M5 10h6"/>`,
	}
}

// icon returns the picture with a name. Readers of a screen pass over it: a text beside it says the same.
func icon(name string) template.HTML {
	return template.HTML(`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">` + icons()[name] + `</svg>`)
}
