// The pages, in the order of the navigation. A file of pages calls `addPage` for each of its own and is imported in
// `main.js`; nothing else needs to know it.
const pages = [];

// `path` as for `match`; `view` is a component that gets { params, query }. With `nav` it stands in the navigation, at
// the place that `order` gives; `section` marks the entry that is current on the pages below it.
export function addPage({ path, title, view, nav = null, order = 100, section = nav }) {
  pages.push({ path, title, view, nav, order, section });
}

export const allPages = () => pages;
export const navigation = () => pages.filter((page) => page.nav).sort((one, other) => one.order - other.order);
