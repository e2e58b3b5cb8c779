// Places in a JSON text: between JSON pointers and positions in the syntax tree of the editor.
import { syntaxTree } from "@codemirror/language";

const values = new Set(["Object", "Array", "String", "Number", "True", "False", "Null"]);
const children = (node) => {
  const list = [];
  for (let n = node.firstChild; n; n = n.nextSibling) list.push(n);
  return list;
};
const items = (node) => children(node).filter((n) => values.has(n.name));
const keyOf = (property, doc) => {
  const name = property.getChild("PropertyName");
  try {
    return name && JSON.parse(doc.sliceString(name.from, name.to));
  } catch {
    return null;
  }
};

// The range of what a pointer names, or of the nearest part around it that is there.
export function locate(tree, doc, pointer) {
  let node = items(tree.topNode)[0], key = null;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    let next = null;
    if (node?.name === "Array") next = items(node)[Number(name)];
    if (node?.name === "Object") {
      key = node.getChildren("Property").find((p) => keyOf(p, doc) === name);
      next = key && items(key)[0];
    }
    if (!next) break;
    node = next;
  }
  if (!node) return { from: 0, to: doc.length };
  const whole = node.name === "Object" || node.name === "Array";
  const line = doc.lineAt(node.from); // a long value is marked at its begin
  return { from: node.from, to: whole ? Math.min(node.to, line.to) : node.to };
}

// The pointer of the value or the key at a position.
export function pointerAt(state, pos) {
  const path = [];
  for (let node = syntaxTree(state).resolveInner(pos, -1); node?.parent; node = node.parent) {
    if (node.name === "Property") path.unshift(keyOf(node, state.doc) ?? "");
    else if (node.parent.name === "Array" && values.has(node.name)) path.unshift(String(items(node.parent).findIndex((n) => n.from === node.from)));
    else if (node.name === "Array" && !path.length) path.unshift(String(items(node).filter((n) => n.to <= pos).length));
  }
  return path.map((p) => "/" + p.replaceAll("~", "~0").replaceAll("/", "~1")).join("");
}

// The inside of the string at a position: the range up to it. null: there is no string.
export function stringAt(state, pos) {
  const node = syntaxTree(state).resolveInner(pos, -1);
  if (node.name !== "String" && node.name !== "PropertyName") return null;
  return pos > node.from ? { from: node.from + 1, to: pos } : null;
}
