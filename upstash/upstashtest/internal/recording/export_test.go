package recording

// Note notes a number as if package bloom had drawn it.
var Note = note
